package criu

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReasons reads logs of CRIU 4.2.1.
func TestReasons(t *testing.T) {
	for _, test := range []struct {
		log   string
		class RetryClass
		want  string
	}{
		{"(00.1) Error (criu/files-ext.c:98): Can't dump file 3 of that type [600] (anon anon_inode:[perf_event])",
			Permanent, unsavableUse("perf_event")},
		{"(00.1) Error (criu/files-ext.c:98): Can't dump file 3 of that type [600] (anon anon_inode:[io_uring])",
			Permanent, unsavableUse("io_uring")},
		{"(00.1) Error (compel/src/lib/infect-util.c:1): send_fds failed (-22)", Permanent, unsavableUse("io_uring")},
		{"(00.1) Error (criu/files-ext.c:98): Can't dump file 3 of that type [600] (anon anon_inode:bpf-map)",
			Permanent, unsavableUse("bpf")},
		{"(00.1) Error (criu/files-ext.c:98): Can't dump file 5 of that type [20666] (chr 195:255 /dev/nvidiactl)",
			Permanent, unsavableUse("gpu")},
		{"(00.1) Error (criu/files-ext.c:98): Can't dump file 5 of that type [20666] (chr 10:200 /dev/net/tun)",
			Permanent, "descriptor 5: chr 10:200 /dev/net/tun"},
		{"(00.1) Error (criu/sk-inet.c:1): inet: Unsupported proto 262 for socket 1b15e3", Permanent, "multipathtcp=0"},
		{"(00.1) Error (criu/namespaces.c:1): Can't dump nested user namespace for 25054", Permanent,
			unsavableUse("nested")},
		{"(00.1) Error (criu/seize.c:1): zombie 25107 (comm sleep) found while seizing", Permanent,
			unsavableUse("ptrace")},
		{"(00.1) Error (criu/sk-unix.c:1): unix: External socket is used. Consider using --ext-unix-sk option.",
			Permanent, unsavableUse("unix")},
		{"(00.1) Error (criu/files-reg.c:1790): Can't lookup mount=24 for fd=10 path=/dev/null", Permanent,
			"the file /dev/null open (descriptor 10)"},
		{"(00.1) Error (criu/cr-dump.c:1): Can't get rlimit 0: Operation not permitted", Permanent, "CAP_SYS_RESOURCE"},
		{"(10.0) Error (criu/cr-dump.c:1655): Timeout reached. Try to interrupt: 0", Retry, "stopped in time"},
		{"(00.0) Error (criu/files-reg.c:1): File var/x has bad size 548 (expect 278)", Retry,
			"var/x has changed since the checkpoint: it has 548 bytes, and had 278"},
		{"(00.0) Error (criu/sk-inet.c:1): inet: Can't bind inet socket (id 5): Address already in use", Retry, "port"},
		{"(00.0) Error (criu/x.c:1): something new", Retry, "CRIU gave up: something new"},
		{"(00.0) nothing wrong", Retry, "CRIU gave up: the cause"},
	} {
		log := filepath.Join(t.TempDir(), "log")
		text := "(00.0) Error (criu/util.c:1534): rlimit: Can't setup RLIMIT_NOFILE for self: Operation " +
			"not permitted\n" + test.log + "\n"
		if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := errorFromLog(log, errors.New("the cause"))
		if got.Class != test.class || !strings.Contains(got.Reason, test.want) {
			t.Errorf("%s: got %v %q, want %q", test.log, got.Class, got.Reason, test.want)
		}
	}
}
