package starterclient_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// runListener acts as a task that serves connections on the sockets that it was passed.
// It ends after $ROOST_TEST_CONNECTIONS on each.
func runListener() {
	fail := func(err error) {
		fmt.Println(err)
		os.Exit(1)
	}
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		fail(fmt.Errorf("the sockets are for process %s, and this is %d", os.Getenv("LISTEN_PID"), os.Getpid()))
	}
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil {
		fail(err)
	}
	names := strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	connections, _ := strconv.Atoi(os.Getenv("ROOST_TEST_CONNECTIONS"))
	done := make(chan error, n)
	for i := range n {
		l, err := net.FileListener(os.NewFile(uintptr(3+i), names[i]))
		if err != nil {
			fail(err)
		}
		go func() {
			for range connections {
				c, err := l.Accept()
				if err == nil {
					_, err = fmt.Fprintf(c, "%s of %s", names[i], os.Getenv("ROOST_TEST_ATTEMPT"))
					c.Close()
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range n {
		if err := <-done; err != nil {
			fail(err)
		}
	}
	os.Exit(0)
}

// listenerCmd is a task that acts so.
func listenerCmd(t *testing.T, number uint32, connections int, sockets []proto.ListenSocket) starterclient.StartCmd {
	t.Helper()
	program := filepath.Join(publicTempDir(t, 0, 0o755), "listener")
	own, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(program, own, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := shellCmd(number, "")
	o.Executable, o.Arguments = program, []string{"listener"}
	o.Environment = []string{"ROOST_TEST_BE=listener", fmt.Sprint("ROOST_TEST_CONNECTIONS=", connections),
		fmt.Sprint("ROOST_TEST_ATTEMPT=", number), "LISTEN_FDS=99"}
	o.Sockets = sockets
	return o
}

// freeSockets are ports of the loopback address that were free a moment ago.
func freeSockets(t *testing.T, names ...string) (list []proto.ListenSocket) {
	t.Helper()
	ip := netip.MustParseAddr("127.0.0.1").AsSlice()
	for _, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		list = append(list, proto.ListenSocket{Name: name, Address: string(ip),
			Port: uint32(l.Addr().(*net.TCPAddr).Port)})
	}
	return list
}

// request asks a port what it is.
func request(s proto.ListenSocket) (string, error) {
	c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port), time.Minute)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	text, err := io.ReadAll(c)
	return string(text), err
}

// TestListenSockets has tasks follow each other on the sockets of their claim. Clients
// connect without a pause, and none of them is refused.
func TestListenSockets(t *testing.T) {
	for _, uid := range []uint32{uint32(os.Geteuid()), nobody} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			if uid != uint32(os.Geteuid()) && os.Geteuid() != 0 {
				t.Skip("only root runs tasks of others")
			}
			runBothWays(t, func(t *testing.T) { testListenSockets(t, uid) })
		})
	}
}

func testListenSockets(t *testing.T, uid uint32) {
	const attempts, connections = 4, 5
	sockets := freeSockets(t, "http", "grpc-1", "third")
	b := spawn(t, time.Minute)
	answers := make(chan error, len(sockets))
	first := listenerCmd(t, 1, connections, sockets)
	first.UID, first.GID = uid, uid
	b.begin(first)
	for _, s := range sockets {
		go func() {
			for i := range attempts * connections {
				want := fmt.Sprintf("%s of %d", s.Name, 1+i/connections)
				if got, err := request(s); err != nil || got != want {
					answers <- fmt.Errorf("connection %d: %q, %w, want %q", i, got, err, want)
					return
				}
			}
			answers <- nil
		}()
	}
	for n := uint32(1); ; n++ {
		if exit := b.end(); exit.Cause != proto.Exited || exit.Code != 0 {
			t.Fatalf("attempt %d: %+v: %s", n, exit, b.read(starterclient.TaskAttempt{Job: 1, Number: n}, false))
		}
		b.DiscardAttempt(starterclient.TaskAttempt{Job: 1, Number: n})
		if n == attempts {
			break
		}
		next := first
		next.Attempt.Number = n + 1
		next.Environment = append([]string{fmt.Sprint("ROOST_TEST_ATTEMPT=", n+1)}, first.Environment[:2]...)
		b.begin(next)
	}
	for range sockets {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// TestListenDescriptors checks that a task has its sockets and nothing else. Failures of
// its start are reported as they are without sockets.
func TestListenDescriptors(t *testing.T) { runBothWays(t, testListenDescriptors) }

func testListenDescriptors(t *testing.T) {
	b, sockets := spawn(t, time.Minute), freeSockets(t, "a", "b", "c", "d", "e", "f", "g", "h")
	o := shellCmd(1, `ls /proc/self/fd | tr '\n' ' '; echo $LISTEN_FDS $LISTEN_FDNAMES; test $LISTEN_PID = $$`)
	o.Sockets = sockets
	b.begin(o)
	if exit := b.end(); exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
	// those of the shell, and that of ls
	want := "0 1 10 11 2 3 4 5 6 7 8 9 8 a:b:c:d:e:f:g:h\n"
	if got := b.read(o.Attempt, false); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.DiscardAttempt(o.Attempt)
	missing := o
	missing.Attempt.Number, missing.Executable = 2, "/no/such"
	if err := b.Start(missing); err != nil {
		t.Fatal(err)
	}
	if exit := b.end(); exit.Step != proto.ExecProgram || syscall.Errno(exit.Errno) != syscall.ENOENT {
		t.Errorf("%+v", exit)
	}
}

// TestListenConflict has another process listen on the port.
func TestListenConflict(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	b, o := spawn(t, time.Minute), shellCmd(1, "true")
	o.Sockets = append(freeSockets(t, "free"), proto.ListenSocket{Name: "taken",
		Port: uint32(other.Addr().(*net.TCPAddr).Port)})
	if err := b.Start(o); err != nil {
		t.Fatal(err)
	}
	if exit := b.end(); exit.Step != proto.BindPort || exit.Cause != proto.Machine ||
		syscall.Errno(exit.Errno) != syscall.EADDRINUSE {
		t.Errorf("%+v", exit)
	}
	b.DiscardAttempt(o.Attempt)
	other.Close()
	o.Attempt.Number = 2
	b.begin(o)
	if exit := b.end(); exit.Code != 0 || exit.Step != proto.StepNone {
		t.Errorf("once the port is free: %+v", exit)
	}
}
