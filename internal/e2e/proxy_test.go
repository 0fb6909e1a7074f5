package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// servedJob is a service whose tasks answer with their revision. After SIGTERM they end
// when nobody has come for half a second.
const servedJob = `job "web" {
  script = <<-END
    #!/usr/bin/env python3
    import http.server, os, signal, sys
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            text = ("revision " + os.environ["REVISION"]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        def log_message(self, *words):
            pass
    class Server(http.server.ThreadingHTTPServer):
        daemon_threads, timeout, stopping = False, 0.5, False
        def handle_timeout(self):
            if self.stopping:
                self.server_close()
                sys.exit(0)
    server = Server(("", int(os.environ["ROOST_PORT_HTTP"])), Handler)
    def stop(*_):
        server.stopping = True
    signal.signal(signal.SIGTERM, stop)
    while True:
        server.handle_request()
  END
  arguments   = ["%s"]
  environment = { REVISION = "%s" }
  count       = 3
  memory      = "50MiB"
  notice      = "1m"

  service {
    drain = "1s"
  }

  port "http" {}

  check "up" {
    http  = "/"
    every = "1s"
  }

  update {
    max_down = 1
    settle   = "1s"
  }
}
`

// servedRequests asks through a proxy without a pause.
type servedRequests struct {
	url       string
	client    *http.Client
	served    atomic.Int64
	mu        sync.Mutex
	revisions map[string]int
	failures  []string
}

func (r *servedRequests) ask(ctx context.Context) {
	for ctx.Err() == nil {
		answer, err := r.client.Get(r.url)
		var text []byte
		if err == nil {
			text, err = io.ReadAll(answer.Body)
			answer.Body.Close()
		}
		r.mu.Lock()
		if err != nil {
			r.failures = append(r.failures, err.Error())
		} else {
			r.served.Add(1)
			r.revisions[string(text)]++
		}
		r.mu.Unlock()
	}
}

func (r *servedRequests) takeFailures() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.failures
	r.failures = nil
	return list
}

// proxyPool is a pool with a service behind a proxy.
type proxyPool struct {
	*testing.T
	*Pool
	dir string
}

// writeJob writes the job with a revision of its program.
func (p *proxyPool) writeJob(revision string) string {
	p.Helper()
	file := filepath.Join(p.dir, "web.hcl")
	if err := os.WriteFile(file, fmt.Appendf(nil, servedJob, p.mark(), revision), 0o644); err != nil {
		p.Fatal(err)
	}
	return file
}

// startProxy starts a proxy and returns its address.
func (p *proxyPool) startProxy() (cmd *exec.Cmd, address string) {
	p.Helper()
	cmd = exec.Command(p.Roost, "proxy", "web:http", "--listen", "127.0.0.1:0", "--wait", "2m")
	cmd.Env = append(os.Environ(), "ROOST_DIR="+p.Dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		p.Fatalf("roost proxy printed %q, %v", line, err)
	}
	return cmd, address
}

// ready counts the tasks that are ready, as the names say.
func (p *proxyPool) ready() (n int) {
	var doc struct {
		Endpoints []struct{ State string }
	}
	if stdout, _, code := p.Command(p.T.Context(), "names", "web", "--json"); code != 0 ||
		json.Unmarshal([]byte(stdout), &doc) != nil {
		return 0
	}
	for _, e := range doc.Endpoints {
		if e.State == "ready" {
			n++
		}
	}
	return n
}

// TestProxy sends requests through roost proxy without a pause. An update of the service
// fails none of them. When a task is killed, at most those that it had fail.
func TestProxy(t *testing.T) {
	t.Parallel()
	pool, err := Start(t.Context(), PoolOptions{Roost: program(t), Dir: filepath.Join(openDir(t), "pool"), Nodes: 1,
		CPUs: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Stop() })
	p := &proxyPool{t, pool, openDir(t)}
	p.mustRun(t, "submit", p.writeJob("1"))
	proxy, address := p.startProxy()
	const clients = 2
	r := &servedRequests{url: "http://" + address, revisions: map[string]int{}, client: &http.Client{
		Timeout: awaitTimeout, Transport: &http.Transport{DisableKeepAlives: true}}}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range clients {
		running.Go(func() { r.ask(ctx) })
	}
	defer running.Wait()
	defer cancel()
	awaitTrue(t, "three tasks are ready", func() bool { return p.ready() == 3 })
	p.mustRun(t, "update", p.writeJob("2"), "--wait")
	if failures := r.takeFailures(); len(failures) > 0 {
		t.Errorf("%d requests failed in the update: %s", len(failures), failures[0])
	}
	p.killTask()
	before := r.served.Load()
	awaitTrue(t, "requests are served after the kill", func() bool { return r.served.Load() > before+100 })
	if failures := r.takeFailures(); len(failures) > clients {
		t.Errorf("%d requests of %d clients failed when a task was killed: %q", len(failures), clients, failures)
	}
	cancel()
	running.Wait()
	r.mu.Lock()
	t.Logf("served: %v", r.revisions)
	if r.revisions["revision 1"] == 0 || r.revisions["revision 2"] == 0 {
		t.Errorf("served: %v, want requests of both revisions", r.revisions)
	}
	r.mu.Unlock()
	proxy.Process.Signal(syscall.SIGTERM)
	if err := proxy.Wait(); err != nil {
		t.Errorf("roost proxy after SIGTERM: %v", err)
	}
}

// mark is an argument of the tasks that no other program on the machine has.
func (p *proxyPool) mark() string { return "task-of-" + filepath.Base(p.dir) }

// killTask kills one of the tasks.
func (p *proxyPool) killTask() {
	p.Helper()
	out, err := exec.CommandContext(p.T.Context(), "pgrep", "-n", "-f", p.mark()).Output()
	if err != nil {
		p.Fatalf("no task is found: %v", err)
	}
	var pid int
	if _, err := fmt.Sscan(string(out), &pid); err != nil {
		p.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		p.Fatal(err)
	}
}
