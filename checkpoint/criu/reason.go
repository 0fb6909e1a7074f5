package criu

import (
	"os"
	"regexp"
	"strings"
)

// said is something that CRIU says, and what it means to the owner of a task. $1 is the first group of the expression.
type said struct {
	pattern *regexp.Regexp
	class   Class
	means   string
}

// sayings go from the particular to the general: the first that fits any of the errors counts.
func sayings() []said {
	say := func(class Class, pattern, means string) said { return said{regexp.MustCompile(pattern), class, means} }
	return []said{
		say(Never, `io_uring`, used("io_uring")),
		say(Never, `send_fds failed \(-22\)`, used("io_uring")), // what the kernel lets nobody pass on
		say(Never, `perf_event`, used("perf_event")),
		say(Never, `userfaultfd`, used("userfaultfd")),
		say(Never, `bpf[-_]?(map|prog|link)|bpfmap`, used("bpf")),
		say(Never, `/dev/fuse|chr 10:229`, used("/dev/fuse")),
		say(Never, `nvidia|/dev/kfd|/dev/dri|chr 195:`, used("gpu")),
		say(Never, `Unsupported proto 262`, used("mptcp")),
		say(Never, `(?i)nested .*(namespace|ns)|Can't dump (a )?nested`, used("nested")),
		say(Never, `zombie \d+ .* found while seizing`, used("ptrace")),
		say(Never, `(?i)(already|is being) (p?traced)|ptrace.*(Operation not permitted)|Unable to (attach|seize).*`, used("ptrace")),
		say(Never, `(?i)external (unix )?(stream )?socket|ext-unix-sk|half of stream unix|[Uu]nix.*peer`, used("unix")),
		say(Again, `Some file locks are hold|[Ll]ocks? .*(outside|not belong|can't)`, "it waits for, or shares, a file lock with a process outside of the task"),
		say(Never, `Can't lookup mount=\d+ for fd=(-?\d+) path=(\S+)`, "it has the file $2 open (descriptor $1), which lies outside of the file systems that it can see: close descriptors that it inherited"),
		say(Never, `Can't dump file (\d+) of that type \[\d+\] \((.*)\)`, "it has something open that cannot be saved (descriptor $1: $2)"),
		say(Never, `Can't get rlimit|prlimit.*not permitted`, "this machine's root lacks CAP_SYS_RESOURCE, and the task runs as another user without a user namespace"),
		say(Never, `Can't dump ghost file (\S+) of (\d+) size`, "it has a file of $2 bytes open that was deleted ($1): that is more than is saved"),
		say(Never, `(?i)hugetlb|huge page`, "it uses huge pages in a way that cannot be saved"),
		say(Never, `A session leader of \d+\((\d+)\) is outside of its pid namespace|shell-job`, "it is attached to a terminal outside of the task"),
		say(Again, `In-flight connection`, "a connection to it was just being made"),
		say(Again, `Connected TCP socket, consider using`, "it has network connections"),
		say(Again, `No space left on device`, "the disk of the machine is full"),
		say(Again, `Can't open dir|Timeout|timed out|Can't freeze|Unable to freeze`, "its processes could not all be stopped in time"),
		say(Again, `File (\S+) has bad size (\d+) \(expect (\d+)\)`, "the file $1 has changed since the checkpoint: it has $2 bytes, and had $3"),
		say(Again, `Can't open file (\S+) on restore: No such file`, "the file $1, which it had open, is not there"),
		say(Again, `Can't bind inet socket.*in use|[Aa]ddress already in use`, "the network port that it listened on is taken on this machine"),
		say(Again, `Can't fork for (\d+): File exists`, "a process number that it had is taken"),
		say(Again, `File (\S+) has bad (mode|build-id|checksum)`, "the file $1 is another one here than it was"),
		say(Again, `[Cc]pu.*(incompatible|not supported|missing)|xsave|CPU (capabilities|features)`, "this machine's processor lacks something that the program was using"),
	}
}

// used says of things that cannot be saved what they are, and what the owner may do about them.
func used(what string) string {
	switch what {
	case "io_uring":
		return "it uses io_uring, whose requests in the kernel cannot be saved: most libraries can be told to do without it"
	case "perf_event":
		return "it measures itself with perf events, which cannot be saved"
	case "userfaultfd":
		return "it uses userfaultfd, which cannot be saved"
	case "bpf":
		return "it uses BPF programs or maps, which cannot be saved"
	case "/dev/fuse":
		return "it serves a FUSE file system, which cannot be saved"
	case "gpu":
		return "it uses a GPU, whose memory cannot be saved: let the program save its own state (checkpoint by signal)"
	case "mptcp":
		return "it has a Multipath TCP socket, which cannot be saved: Go programs use plain TCP with GODEBUG=multipathtcp=0 in their environment"
	case "nested":
		return "it made namespaces of its own (a container, or a browser's sandbox), which cannot be saved"
	case "ptrace":
		return "one of its processes is traced by another (a debugger, or strace)"
	case "unix":
		return "it is connected to a process outside of the task through a unix socket"
	}
	return what
}

// harmless is an error that CRIU logs wherever root may not raise its own limits, and that nothing follows from.
const harmless = "rlimit: Can't setup RLIMIT_NOFILE for self"

// failureOf explains a failed run from its log. cause is what the library said, if there is nothing in the log.
func failureOf(log string, cause error) *Failure {
	f := &Failure{Detail: errorsIn(log)}
	all := strings.Join(f.Detail, "\n")
	for _, s := range sayings() {
		if found := s.pattern.FindStringSubmatchIndex(all); found != nil {
			f.Class, f.Reason = s.class, string(s.pattern.ExpandString(nil, s.means, all, found))
			return f
		}
	}
	f.Reason = "CRIU gave up"
	if len(f.Detail) > 0 {
		f.Reason += ": " + f.Detail[0]
	} else if cause != nil {
		f.Reason += ": " + cause.Error()
	}
	return f
}

// maxDetail bounds what is kept of a log.
const maxDetail = 12

// errorsIn lists the errors in a log of CRIU's, without the places in its source.
func errorsIn(log string) []string {
	text, _ := os.ReadFile(log)
	var list []string
	for line := range strings.Lines(string(text[:min(len(text), maxLog)])) {
		_, message, ok := strings.Cut(line, "Error (")
		if !ok || strings.Contains(message, harmless) || len(list) == maxDetail {
			continue
		}
		if _, after, ok := strings.Cut(message, "): "); ok {
			message = after
		}
		list = append(list, strings.ToValidUTF8(strings.TrimSpace(message), "?"))
	}
	return list
}
