package userfiles

import (
	"net"
	"os"
	"testing"
)

// TestMain lets the test binary be the agent's program.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == AgentCommand {
		conn, err := net.FileConn(os.NewFile(3, "agent"))
		if err != nil || ServeAgent(conn) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == TreeCommand {
		if ServeTree(os.Args[2:], os.Stdin, os.Stdout, os.NewFile(3, "report")) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func ownCredential() UserCredential {
	return UserCredential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
}

func startAgent(t testing.TB, cred UserCredential) *Agent {
	t.Helper()
	exe := "/proc/self/exe"
	if int(cred.UID) != os.Geteuid() {
		exe = copyTestBinary(t)
	}
	a, err := StartAgent(cred, exe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// copyTestBinary copies the test binary to where another user can run it.
func copyTestBinary(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "roost-files")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(dir+"/agent", program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir + "/agent"
}

// writeTree makes files below dir; a name that ends in a slash is a directory.
func writeTree(t testing.TB, dir string, tree map[string]string) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, text := range tree {
		at := name
		if text != "" || name[len(name)-1] != '/' {
			at = name[:max(0, lastSlash(name))]
		}
		if at != "" {
			if err := root.MkdirAll(trimSlash(at), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if name[len(name)-1] != '/' {
			if err := root.WriteFile(name, []byte(text), 0o640); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func lastSlash(name string) int {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			return i
		}
	}
	return 0
}

func trimSlash(name string) string {
	for len(name) > 0 && name[len(name)-1] == '/' {
		name = name[:len(name)-1]
	}
	return name
}
