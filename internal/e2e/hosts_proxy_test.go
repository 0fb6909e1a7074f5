package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/config"
)

// proxiedJob is a service whose tasks answer with their address and revision. After
// SIGTERM they end when nobody has come for a while. A request for /wait has its answer
// when the client has closed its side.
const proxiedJob = `job "web" {
  script = <<-END
    #!/usr/bin/python3 -SE
    import os, signal, socket, threading
    stopping, idle = False, 0
    def stop(*_):
        global stopping
        stopping = True
    signal.signal(signal.SIGTERM, stop)
    text = os.environ["ROOST_ADDR_HTTP"] + " revision " + os.environ["REVISION"] + " end\n"
    answer = ("HTTP/1.0 200 OK\r\nContent-Length: %%d\r\n\r\n%%s" %% (len(text), text)).encode()
    def serve(c):
        with c:
            c.settimeout(60)
            try:
                if c.recv(4096).startswith(b"GET /wait"):
                    c.sendall(answer[:-5])
                    c.recv(1)
                    c.sendall(answer[-5:])
                else:
                    c.sendall(answer)
            except OSError:
                pass
    server = socket.create_server(("", int(os.environ["ROOST_PORT_HTTP"])), backlog=128)
    server.settimeout(0.1)
    while not (stopping and idle >= 10):
        try:
            c, _ = server.accept()
        except TimeoutError:
            idle += 1
            continue
        idle = 0
        threading.Thread(target=serve, args=(c,)).start()
  END
  environment = { REVISION = "%s" }
  count       = 10
  memory      = "30MiB"
  spread      = "Name"
  notice      = "1m"

  service {
    drain = "1s"
  }

  port "http" {}

  check "up" {
    http  = "/"
    every = "1s"
    fails = 20
  }

  update {
    at_once  = 5
    max_down = 5
    settle   = "0.1s"
  }
}
`

// proxiedService is a service in the queue of a cell, and clients of its proxy.
type proxiedService struct {
	*cellHostPool
	id      string
	address string // of the proxy

	served   atomic.Int64
	mu       sync.Mutex
	failures []string
	answers  map[string]int // how many, by revision
}

const (
	proxyClients = 4
	// between two requests of a client
	requestInterval = 4 * time.Millisecond
	phaseRequests   = 2500
	requestsAfter   = 100 // at least, when a phase has been
)

// TestProxyThroughFailures has a service of ten tasks serve more than 10,000 requests
// through roost proxy. None fails in an update, in drains of its machines, or when the
// leaders of the cell are killed. When a machine dies, only those fail that it had.
func TestProxyThroughFailures(t *testing.T) {
	t.Parallel()
	s := &proxiedService{cellHostPool: makeCellQueue(t), answers: map[string]int{}}
	s.addLateServers()
	for name, host := range s.nodes {
		if name != "exec3" && name != "exec4" {
			host.start()
		}
	}
	s.awaitTrue("the queue of the cell", func() bool { return s.queueLeader() != "" })
	file := s.jobFile("1")
	s.awaitTrue("the leader knows both machines and takes the service", func() bool {
		stdout, _, code := s.runAs(someone, "submit", "--quiet", file)
		s.id = strings.TrimSpace(stdout)
		return code == 0
	})
	s.startProxy()
	s.awaitReady("ten tasks are ready", func(namedTask) bool { return true })
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range proxyClients {
		clients.Go(func() { s.askUntil(ctx) })
	}
	defer clients.Wait()
	defer cancel()
	s.during("an update", func() { s.mustAs("update", "--wait", "--job", s.id, s.jobFile("2")) })
	s.during("drains", s.drainMachines)
	s.during("killed leaders", s.killLeaders)
	s.machineDies()
	cancel()
	clients.Wait()
	t.Logf("served: %v", s.answers)
	if len(s.answers) != 2 || s.served.Load() < 4*phaseRequests {
		t.Errorf("served: %v, want %d of two revisions", s.answers, 4*phaseRequests)
	}
}

// addLateServers adds two machines that are not started yet.
func (s *proxiedService) addLateServers() {
	for name, address := range map[string]string{"exec3": "10.111.0.13", "exec4": "10.111.0.14"} {
		s.addServer(name, address)
		host := s.nodes[name]
		host.node.Pool = cellQueueName
		if err := os.WriteFile(host.dir+".hcl", config.Write(host.node), 0o600); err != nil {
			s.Fatal(err)
		}
	}
}

// jobFile writes the job with a revision of its program.
func (s *proxiedService) jobFile(revision string) string {
	s.Helper()
	return s.writeUserFile("web.hcl", fmt.Sprintf(proxiedJob, revision), 0o600)
}

// startProxy starts a proxy at the submit node.
func (s *proxiedService) startProxy() {
	s.Helper()
	cmd := exec.Command("nsenter", "--net=/run/netns/"+s.net.namespaceName("submit"), s.roost, "proxy", s.id+":http",
		"--listen", "127.0.0.1:0", "--wait", "1m")
	cmd.Env = append(os.Environ(), "ROOST_DIR="+s.nodes["submit"].dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		s.Fatalf("roost proxy printed %q, %v", line, err)
	}
	s.address = address
}

// tasks lists the tasks as clients find them.
func (s *proxiedService) tasks() []namedTask {
	var reply struct{ Endpoints []namedTask }
	s.querySubmitNode(&reply, "names", s.id)
	return reply.Endpoints
}

// awaitReady waits until ten tasks are ready, all of them where they are wanted.
func (s *proxiedService) awaitReady(what string, isWanted func(namedTask) bool) {
	s.Helper()
	s.awaitTrue(what, func() bool {
		ready := 0
		for _, task := range s.tasks() {
			if task.State == "ready" && isWanted(task) {
				ready++
			}
		}
		return ready == 10
	})
}

// inSubmitNode has the calling goroutine make its connections at the submit node. It
// keeps its thread until it ends.
func (s *proxiedService) inSubmitNode() error {
	runtime.LockOSThread()
	at, err := os.Open("/run/netns/" + s.net.namespaceName("submit"))
	if err != nil {
		return err
	}
	defer at.Close()
	return unix.Setns(int(at.Fd()), unix.CLONE_NEWNET)
}

// askUntil sends requests until the end of ctx.
func (s *proxiedService) askUntil(ctx context.Context) {
	if err := s.inSubmitNode(); err != nil {
		s.Error(err)
		return
	}
	for ctx.Err() == nil {
		answer, err := s.ask()
		s.mu.Lock()
		if err != nil {
			s.failures = append(s.failures, err.Error())
		} else {
			_, revision, _ := strings.Cut(answer, " ")
			s.answers[revision]++
			s.served.Add(1)
		}
		s.mu.Unlock()
		waitReal(ctx, requestInterval)
	}
}

// ask sends a request, and returns what the task says.
func (s *proxiedService) ask() (answer string, err error) {
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(awaitTimeout))
	if _, err = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		return "", err
	}
	return readAnswer(conn)
}

// readAnswer reads a whole answer.
func readAnswer(conn net.Conn) (string, error) {
	text, err := io.ReadAll(conn)
	if err != nil {
		return "", err
	}
	_, answer, _ := strings.Cut(string(text), "\r\n\r\n")
	answer, isWhole := strings.CutSuffix(answer, " end\n")
	if !isWhole {
		return "", fmt.Errorf("the answer is %q", text)
	}
	return answer, nil
}

func (s *proxiedService) takeFailures() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.failures
	s.failures = nil
	return list
}

// awaitServed waits until a number of requests was served in all.
func (s *proxiedService) awaitServed(n int64) {
	s.Helper()
	s.awaitTrue("requests are served", func() bool { return s.served.Load() >= n })
}

// during does what must fail no request.
func (s *proxiedService) during(what string, do func()) {
	s.Helper()
	began, before := time.Now(), s.served.Load()
	do()
	s.awaitServed(max(before+phaseRequests, s.served.Load()+requestsAfter))
	s.Logf("%s: %d requests in %v", what, s.served.Load()-before, time.Since(began).Round(time.Millisecond))
	if failures := s.takeFailures(); len(failures) > 0 {
		s.Errorf("%s: %d requests failed: %.500q", what, len(failures), failures)
	}
}

// drainMachines drains both machines of the service at once. All tasks go to others.
func (s *proxiedService) drainMachines() {
	for _, name := range []string{"exec3", "exec4"} {
		s.nodes[name].start()
	}
	s.awaitTrue("the other machines", func() bool { return len(s.machineNames()) == 4 })
	for _, name := range []string{"exec1", "exec2"} {
		s.administer("central1", "drain", name)
	}
	s.awaitReady("ten tasks are ready on the other machines", func(t namedTask) bool {
		return t.Address == "10.111.0.13" || t.Address == "10.111.0.14"
	})
}

// killLeaders kills the leader of the negotiators and of the queue, which may be one.
func (s *proxiedService) killLeaders() {
	for role, leader := range map[string]func() string{
		"negotiators": func() string { return s.status("central1").leader() }, "queue": s.queueLeader} {
		old := ""
		s.awaitTrue("the "+role+" have a leader", func() bool { old = leader(); return old != "" })
		s.nodes[old].killMaster()
		s.awaitTrue("another one leads the "+role, func() bool {
			now := s.queueLeader()
			if role == "negotiators" {
				now = s.status(otherCentrals(old)[0]).leader()
			}
			return now != "" && now != old
		})
		s.nodes[old].start()
		s.awaitThreeVoters()
	}
}

// machineDies cuts off a machine and kills everything on it. What it had in flight fails,
// and nothing else does.
func (s *proxiedService) machineDies() {
	held := make(chan heldRequest)
	for range 2 * proxyClients {
		go func() { held <- s.holdRequest() }()
	}
	var list []heldRequest
	for range 2 * proxyClients {
		list = append(list, <-held)
	}
	s.net.unplug("exec3")
	s.net.crashHost("exec3")
	s.awaitServed(s.served.Load() + phaseRequests)
	failed := s.takeFailures()
	if len(failed) > proxyClients {
		s.Errorf("%d requests of %d clients failed when a machine died: %.500q", len(failed), proxyClients, failed)
	}
	onDead := 0
	for _, r := range list {
		dies := strings.HasPrefix(r.begin, "10.111.0.13:")
		if dies {
			onDead++
		}
		if err := r.finish(dies); (err != nil) != dies {
			s.Errorf("a request in flight at %s: %v", r.begin, err)
		}
	}
	if onDead == 0 || onDead == len(list) {
		s.Errorf("%d of %d requests were in flight on the machine that died", onDead, len(list))
	}
	s.Logf("a machine dies: %d requests failed, and %d in flight", len(failed), onDead)
}

// heldRequest is a request whose answer has begun.
type heldRequest struct {
	conn  net.Conn
	begin string // of the answer
	err   error
}

// holdRequest sends a request whose answer ends when the client says so.
func (s *proxiedService) holdRequest() (r heldRequest) {
	if r.err = s.inSubmitNode(); r.err != nil {
		return r
	}
	if r.conn, r.err = net.Dial("tcp", s.address); r.err != nil {
		return r
	}
	r.conn.SetDeadline(time.Now().Add(awaitTimeout))
	if _, r.err = io.WriteString(r.conn, "GET /wait HTTP/1.0\r\n\r\n"); r.err != nil {
		return r
	}
	buffer, text := make([]byte, 1000), ""
	for r.err == nil && !strings.Contains(text, " revision ") {
		var n int
		n, r.err = r.conn.Read(buffer)
		text += string(buffer[:n])
	}
	_, r.begin, _ = strings.Cut(text, "\r\n\r\n")
	return r
}

// finish reads the rest of the answer. The client of a dead task says nothing, and is to
// notice its end all the same.
func (r heldRequest) finish(isDead bool) error {
	if r.err != nil {
		return r.err
	}
	defer r.conn.Close()
	if !isDead {
		r.conn.(*net.TCPConn).CloseWrite()
	}
	rest, err := io.ReadAll(r.conn)
	if err == nil && string(rest) != " end\n" {
		err = errors.New("the answer was cut")
	}
	if isDead && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil // it was not told that its task is gone
	}
	return err
}
