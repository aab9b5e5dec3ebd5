#include "tests/support/run_to_end.h"

#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/temp_folder.h"
#include "tests/support/whole_file.h"

namespace wb::test {
namespace {

/// In the child: never returns.
[[noreturn]] void Become(const std::vector<std::string>& argv,
                         const std::vector<std::string>& environment,
                         const std::string& out,
                         const std::string& err) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::close(STDIN_FILENO);
  ::open("/dev/null", O_RDONLY);
  ::dup2(::open(out.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600), STDOUT_FILENO);
  ::dup2(::open(err.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600), STDERR_FILENO);
  for (const std::string& setting : environment) ::putenv(const_cast<char*>(setting.c_str()));
  std::vector<char*> raw;
  raw.reserve(argv.size() + 1);
  for (const std::string& argument : argv) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  ::execv(raw[0], raw.data());
  ::_exit(127);
}

}  // namespace

ProgramEnd RunToEnd(const std::vector<std::string>& argv,
                    const std::vector<std::string>& environment,
                    std::chrono::milliseconds deadline) {
  const TempFolder folder;
  const std::string out = folder.path() + "/out";
  const std::string err = folder.path() + "/err";
  ProgramEnd finished;
  const pid_t child = ::fork();
  if (child < 0) return finished;
  if (child == 0) Become(argv, environment, out, err);
  pollfd ended{static_cast<int>(::syscall(SYS_pidfd_open, child, 0)), POLLIN, 0};
  finished.timed_out = ::poll(&ended, 1, static_cast<int>(deadline.count())) == 0;
  ::close(ended.fd);
  if (finished.timed_out) ::kill(-child, SIGKILL);
  int status = 0;
  if (::waitpid(child, &status, 0) == child) {
    finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  finished.out = ReadWholeFile(out);
  finished.err = ReadWholeFile(err);
  return finished;
}

}  // namespace wb::test
