package startd

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/criu"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/shell"
)

// startdEnvVar makes the test binary a startd: the node it is of, as JSON, and the
// starter.
const (
	startdEnvVar  = "ROOST_TEST_STARTD"
	starterEnvVar = "ROOST_TEST_STARTER"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == userfiles.AgentCommand {
		agentMain()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == criu.AgentName {
		if criu.ServeAgent(os.Stdin, os.Stdout, "/proc/self/exe") != nil {
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == shell.AgentCommand {
		err := shell.Agent(os.Args[2:])
		fmt.Fprintln(os.Stderr, "roost:", err)
		os.Exit(shell.ExitCode(err))
	}
	if text := os.Getenv(startdEnvVar); text != "" {
		startdMain(text)
		return
	}
	os.Exit(testMain(m))
}

func agentMain() {
	f := os.NewFile(3, "socket")
	conn, err := net.FileConn(f)
	if err == nil {
		err = userfiles.ServeAgent(conn)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func startdMain(text string) {
	var node config.Node
	if err := json.Unmarshal([]byte(text), &node); err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, &node, "n1", os.Getenv(starterEnvVar)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "startd")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "roost-starter")
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path,
		"github.com/roost-batch/roost/cmd/roost-starter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "roost-starter cannot be built: %v\n%s", err, out)
		return 1
	}
	os.Chmod(dir, 0o755)
	os.Setenv(starterEnvVar, path)
	return m.Run()
}

// fakeCollector is the least that a startd needs of one: it takes ads.
type fakeCollector struct {
	wire.UnimplementedCollectorServer
	mu      sync.Mutex
	last    *wire.AdUpdate
	changed chan struct{}
}

func (c *fakeCollector) Advertise(stream grpc.BidiStreamingServer[wire.AdUpdate, wire.AdAck]) error {
	for {
		u, err := stream.Recv()
		if err != nil {
			return nil
		}
		c.mu.Lock()
		if u.GetAd() != "" || u.GetInvalidate() {
			c.last = u
			close(c.changed)
			c.changed = make(chan struct{})
		}
		c.mu.Unlock()
		if err := stream.Send(&wire.AdAck{Sequence: u.GetSequence()}); err != nil {
			return nil
		}
	}
}

// awaitAd returns the first ad that holds.
func (c *fakeCollector) awaitAd(t testing.TB, what string,
	holds func(*wire.AdUpdate, *classad.Ad) bool) *wire.AdUpdate {
	t.Helper()
	late := time.After(time.Minute)
	for {
		c.mu.Lock()
		u, changed := c.last, c.changed
		c.mu.Unlock()
		if u != nil {
			ad, err := classad.Parse(u.GetAd())
			if u.GetAd() != "" && err != nil {
				t.Fatalf("ad: %v", err)
			}
			if holds(u, ad) {
				return u
			}
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("no ad that %s; the last is %v", what, u)
		}
	}
}

// testStartd is a startd in a process of its own, with a collector.
type testStartd struct {
	t    testing.TB
	node *config.Node
	ads  *fakeCollector
	cmd  *exec.Cmd
	log  strings.Builder
}

// newTestStartd starts a startd with 4 cores in a new directory.
func newTestStartd(t testing.TB) *testStartd { return newTestStartdWith(t, func(*testStartd) {}) }

// newTestStartdWith starts a startd whose node is changed before, or that finds something
// there.
func newTestStartdWith(t testing.TB, before func(*testStartd)) *testStartd {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} { // other users' tasks run below it
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := &testStartd{t: t, ads: &fakeCollector{changed: make(chan struct{})}}
	p.node = &config.Node{
		Name: "host1", Dir: dir, FileSystemDomain: "fsd", Collectors: []string{"unix:" + dir + "/collector.sock"},
		Startds: []config.StartdSettings{{
			Name: "n1", Dir: dir + "/n1", Listen: []string{"unix:" + dir + "/startd.sock"}, AllowRoot: true,
			Resources:  roost.Resources{CPU: 4000, Memory: 4 * roost.GiB, Disk: 10 * roost.GiB},
			Attributes: map[string]string{"HasGlue": "true"}, StopNotice: 2 * time.Second,
		}},
	}
	l, err := rpc.Listen(p.node.Collectors[0], 0o600)
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.NewServer(nil, peer.MethodAccess())
	wire.RegisterCollectorServer(server, p.ads)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("startd:\n%s", p.log.String())
		}
	})
	before(p)
	p.start()
	return p
}

func (p *testStartd) start(env ...string) {
	p.t.Helper()
	p.ads.mu.Lock()
	p.ads.last = nil
	p.ads.mu.Unlock()
	text, err := json.Marshal(p.node)
	if err != nil {
		p.t.Fatal(err)
	}
	exe, _ := os.Executable()
	p.cmd = exec.Command(exe)
	p.cmd.Env = append(append(os.Environ(), startdEnvVar+"="+string(text)), env...)
	p.cmd.Stderr = &p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.ads.awaitAd(p.t, "is there", func(u *wire.AdUpdate, _ *classad.Ad) bool { return u.GetAd() != "" })
}

// kill ends the startd with SIGKILL: its starters live on.
func (p *testStartd) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
	p.cmd = nil
}

// stop ends it as its master would.
func (p *testStartd) stop() {
	if p.cmd != nil {
		p.cmd.Process.Signal(syscall.SIGTERM)
		p.cmd.Wait()
		p.cmd = nil
	}
}

// grantKey is what a negotiator knows.
func (p *testStartd) grantKey() []byte {
	u := p.ads.awaitAd(p.t, "has a key", func(u *wire.AdUpdate, _ *classad.Ad) bool {
		return u.GetPrivate()["GrantKey"] != ""
	})
	key, err := hex.DecodeString(u.GetPrivate()["GrantKey"])
	if err != nil {
		p.t.Fatal(err)
	}
	return key
}
