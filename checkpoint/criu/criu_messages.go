package criu

import (
	"os"
	"regexp"
	"strings"
)

// criuMessage maps an error message of CRIU to an explanation for the task's owner. $1 is
// the first group of the expression.
type criuMessage struct {
	pattern *regexp.Regexp
	class   RetryClass
	meaning string
}

// criuMessages returns all messages, specific ones first: the first that matches any of
// the errors is used.
func criuMessages() []criuMessage {
	newMessage := func(class RetryClass, pattern, means string) criuMessage {
		return criuMessage{regexp.MustCompile(pattern), class, means}
	}
	return []criuMessage{
		newMessage(Permanent, `io_uring`, unsavableUse("io_uring")),
		// what the kernel does not allow to be passed between processes
		newMessage(Permanent, `send_fds failed \(-22\)`, unsavableUse("io_uring")),
		newMessage(Permanent, `perf_event`, unsavableUse("perf_event")),
		newMessage(Permanent, `userfaultfd`, unsavableUse("userfaultfd")),
		newMessage(Permanent, `bpf[-_]?(map|prog|link)|bpfmap`, unsavableUse("bpf")),
		newMessage(Permanent, `/dev/fuse|chr 10:229`, unsavableUse("/dev/fuse")),
		newMessage(Permanent, `nvidia|/dev/kfd|/dev/dri|chr 195:`, unsavableUse("gpu")),
		newMessage(Permanent, `Unsupported proto 262`, unsavableUse("mptcp")),
		newMessage(Permanent, `(?i)nested .*(namespace|ns)|Can't dump (a )?nested`, unsavableUse("nested")),
		newMessage(Permanent, `zombie \d+ .* found while seizing`, unsavableUse("ptrace")),
		newMessage(Permanent,
			`(?i)(already|is being) (p?traced)|ptrace.*(Operation not permitted)|Unable to (attach|seize).*`,
			unsavableUse("ptrace")),
		newMessage(Permanent, `(?i)external (unix )?(stream )?socket|ext-unix-sk|half of stream unix|[Uu]nix.*peer`,
			unsavableUse("unix")),
		newMessage(Retry, `Some file locks are hold|[Ll]ocks? .*(outside|not belong|can't)`,
			"it waits for, or shares, a file lock with a process outside of the task"),
		newMessage(Permanent, `Can't lookup mount=\d+ for fd=(-?\d+) path=(\S+)`,
			"it has the file $2 open (descriptor $1), which lies outside of the file systems that it can see: close "+
				"descriptors that it inherited"),
		newMessage(Permanent, `Can't dump file (\d+) of that type \[\d+\] \((.*)\)`,
			"it has something open that cannot be saved (descriptor $1: $2)"),
		newMessage(Permanent, `Can't get rlimit|prlimit.*not permitted`,
			"this machine's root lacks CAP_SYS_RESOURCE, and the task runs as another user without a user namespace"),
		newMessage(Permanent, `Can't dump ghost file (\S+) of (\d+) size`,
			"it has a file of $2 bytes open that was deleted ($1): that is more than is saved"),
		newMessage(Permanent, `(?i)hugetlb|huge page`, "it uses huge pages in a way that cannot be saved"),
		newMessage(Permanent, `A session leader of \d+\((\d+)\) is outside of its pid namespace|shell-job`,
			"it is attached to a terminal outside of the task"),
		newMessage(Retry, `In-flight connection`, "a connection to it was just being made"),
		newMessage(Retry, `Connected TCP socket, consider using`, "it has network connections"),
		newMessage(Retry, `No space left on device`, "the disk of the machine is full"),
		newMessage(Retry, `Can't open dir|Timeout|timed out|Can't freeze|Unable to freeze`,
			"its processes could not all be stopped in time"),
		newMessage(Retry, `File (\S+) has bad size (\d+) \(expect (\d+)\)`,
			"the file $1 has changed since the checkpoint: it has $2 bytes, and had $3"),
		newMessage(Retry, `Can't open file (\S+) on restore: No such file`,
			"the file $1, which it had open, is not there"),
		newMessage(Retry, `Can't bind inet socket.*in use|[Aa]ddress already in use`,
			"the network port that it listened on is taken on this machine"),
		newMessage(Retry, `Can't fork for (\d+): File exists`, "a process number that it had is taken"),
		newMessage(Retry, `File (\S+) has bad (mode|build-id|checksum)`, "the file $1 is another one here than it was"),
		newMessage(Retry, `[Cc]pu.*(incompatible|not supported|missing)|xsave|CPU (capabilities|features)`,
			"this machine's processor lacks something that the program was using"),
	}
}

// unsavableUse returns an explanation for a feature that cannot be checkpointed, with
// advice for the owner.
func unsavableUse(what string) string {
	switch what {
	case "io_uring":
		return "it uses io_uring, whose requests in the kernel cannot be saved: most libraries can be told to " +
			"do without it"
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
		return "it has a Multipath TCP socket, which cannot be saved: Go programs use plain TCP with " +
			"GODEBUG=multipathtcp=0 in their environment"
	case "nested":
		return "it made namespaces of its own (a container, or a browser's sandbox), which cannot be saved"
	case "ptrace":
		return "one of its processes is traced by another (a debugger, or strace)"
	case "unix":
		return "it is connected to a process outside of the task through a unix socket"
	}
	return what
}

// harmlessMessage is an error without consequences that CRIU logs wherever root may not
// raise its own limits.
const harmlessMessage = "rlimit: Can't setup RLIMIT_NOFILE for self"

// errorFromLog explains a failed run from its log. cause is the library's error, which is
// used if the log has none.
func errorFromLog(log string, cause error) *CheckpointError {
	f := &CheckpointError{Detail: logErrors(log)}
	all := strings.Join(f.Detail, "\n")
	for _, s := range criuMessages() {
		if found := s.pattern.FindStringSubmatchIndex(all); found != nil {
			f.Class, f.Reason = s.class, string(s.pattern.ExpandString(nil, s.meaning, all, found))
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

// maxDetail bounds the lines of a log in an error.
const maxDetail = 12

// logErrors lists the errors in a log of CRIU, without positions in its source.
func logErrors(log string) []string {
	text, _ := os.ReadFile(log)
	var list []string
	for line := range strings.Lines(string(text[:min(len(text), maxLog)])) {
		_, message, ok := strings.Cut(line, "Error (")
		if !ok || strings.Contains(message, harmlessMessage) || len(list) == maxDetail {
			continue
		}
		if _, after, ok := strings.Cut(message, "): "); ok {
			message = after
		}
		list = append(list, strings.ToValidUTF8(strings.TrimSpace(message), "?"))
	}
	return list
}
