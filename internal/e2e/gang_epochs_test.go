package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/master"
)

// ringProgram passes a number around the tasks of a gang by TCP, and changes it at each.
// Asked by USR2 it saves its state with the step that all have done, and ends with 85. It
// completes when it has saved so often.
const ringProgram = `import os, signal, socket, sys, time

rank, size = int(os.environ["ROOST_GANG_RANK"]), int(os.environ["ROOST_GANG_SIZE"])
attempt, base, epochs = os.environ["ROOST_ATTEMPT"], int(sys.argv[1]), int(sys.argv[2])
asked = False


def ask(*_):
    global asked
    asked = True


signal.signal(signal.SIGUSR2, ask)
step, value, saves = 0, 1, 0
os.makedirs("saved", exist_ok=True)
if os.path.exists("saved/state"):
    step, value, saves = map(int, open("saved/state").read().split())
listener = socket.create_server(("127.0.0.1", base + rank))
listener.settimeout(1)


def next_rank():
    for _ in range(200):
        try:
            s = socket.create_connection(("127.0.0.1", base + (rank + 1) % size))
            s.sendall(f"{attempt:>8}".encode())
            if s.recv(2) == b"ok":
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return s.makefile("rw")
        except OSError:
            pass
        time.sleep(0.05)
    sys.exit("the next rank is not there")


def previous_rank():
    late = time.time() + 20
    while time.time() < late:
        try:
            s, _ = listener.accept()
        except TimeoutError:
            continue
        s.settimeout(None)
        if s.recv(8).decode().strip() == attempt:
            s.sendall(b"ok")
            return s.makefile("rw")
    sys.exit("the previous rank is not there")


if rank % 2:
    behind, ahead = previous_rank(), next_rank()
else:
    ahead, behind = next_rank(), previous_rank()


def receive():
    line = behind.readline()
    if not line:
        sys.exit("the ring is broken")
    number, word = line.split()
    return int(number), word


while True:
    step += 1
    if rank == 0:
        word = "go" if not asked else "save" if saves < epochs else "end"
    else:
        value, word = receive()
    value = (value * 31 + rank + step) % 1000003
    print(step, value)
    ahead.write(f"{value} {word}\n")
    ahead.flush()
    if rank == 0:
        value, _ = receive()
    if word == "save":
        with open("saved/new", "w") as f:
            f.write(f"{step} {value} {saves + 1}")
        os.rename("saved/new", "saved/state")
        sys.exit(85)
    if word == "end":
        sys.exit(0)
    time.sleep(0.01)
`

// ringOutput is what a rank of the ring prints in so many steps, if nothing stops it.
func ringOutput(rank, size, steps int) string {
	var b strings.Builder
	value := 1
	for step := 1; step <= steps; step++ {
		for r := range size {
			if value = (value*31 + r + step) % 1000003; r == rank {
				fmt.Fprintf(&b, "%d %d\n", step, value)
			}
		}
	}
	return b.String()
}

// ringEvents returns how many epochs of the ring were committed, and how many attempts
// went on from one.
func (p *Pool) ringEvents(t *testing.T) (saved, restored int, state string) {
	out, _, code := p.Command(t.Context(), "show", "--json", "--events", "0", "@ring")
	var d struct {
		Job struct {
			State string
			Tasks int
		}
		Events []struct{ What, Text string }
	}
	if code != 0 {
		return 0, 0, ""
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	for _, e := range d.Events {
		if e.What == "gang-saved" {
			saved++
		}
		if e.What == "started" && strings.HasPrefix(e.Text, "from checkpoint") {
			restored++
		}
	}
	return saved, restored, d.Job.State
}

// ringEpoch returns what a job says of its saved epoch.
func (p *Pool) ringEpoch(t *testing.T, job string) (g document.GangEpoch) {
	out := p.mustRun(t, "show", "--json", job)
	var d struct{ Job document.Job }
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Job.Epochs) != 1 {
		t.Fatalf("%d epochs: %s", len(d.Job.Epochs), out)
	}
	return d.Job.Epochs[0]
}

// checkEpochWords holds what commands say of the saved epoch of the ring against the
// event that committed it.
func (p *Pool) checkEpochWords(t *testing.T) {
	g := p.ringEpoch(t, "@ring")
	if g.Epoch == 0 || g.Tasks != 2 || g.Size <= 0 || g.From != g.Epoch-1 || g.Committed == "" {
		t.Errorf("the last epoch is %+v", g)
	}
	name := fmt.Sprintf("epoch %d", g.Epoch)
	for _, c := range []struct{ command, want string }{
		{"show", name + ", saved "}, {"why", name + ", saved "}, {"jobs", name},
		{"show --events 0", fmt.Sprintf("%s of the gang, from epoch %d: the files of 2 tasks are home", name, g.From)},
	} {
		if out := p.mustRun(t, append(strings.Fields(c.command), "@ring")...); !strings.Contains(out, c.want) {
			t.Errorf("roost %s says nothing of %q:\n%s", c.command, c.want, out)
		}
	}
}

// killNode kills a startd with its starters and tasks, as a failing machine does.
func (p *Pool) killNode(t *testing.T, name string) {
	state, _, err := master.ReadState(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range state.Daemons {
		if d.Role == "startd" && d.Name == name {
			syscall.Kill(d.PID, syscall.SIGKILL)
		}
	}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		args, _ := os.ReadFile(file)
		if strings.Contains(string(args), "roost-starter") &&
			strings.Contains(string(args), filepath.Join(p.Dir, "startd", name)+"/") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// freePorts returns the first of so many ports that nobody uses.
func freePorts(t *testing.T, n int) int {
	for range 100 {
		base := 20000 + rand.IntN(10000)
		free := true
		for i := range n {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(base+i)))
			if err == nil {
				l.Close()
			}
			free = free && err == nil
		}
		if free {
			return base
		}
	}
	t.Fatal("there are no free ports")
	return 0
}

// TestGangEpochs runs a ring of two tasks over several epochs. Between two of them it is
// killed, vacated, or asked to save itself. What it prints is what a ring prints that
// nothing ever stopped. ROOST_EPOCHS is the number of epochs.
func TestGangEpochs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	epochs := 4
	if n, err := strconv.Atoi(os.Getenv("ROOST_EPOCHS")); err == nil {
		epochs = n
	}
	p := nodePool(t, &config.Node{Startds: twoNodes()})
	dir := openDir(t)
	script, job := filepath.Join(dir, "ring.py"), filepath.Join(dir, "ring.hcl")
	text := fmt.Sprintf(`job "ring" {
  command  = ["python3", "%s", "%d", "%d"]
  count    = 2
  gang     = true
  apart    = true
  memory   = "64MiB"
  transfer = "always"
  stdout   = "%s/ring.${task.index}"
  notice   = "10s"
  retries  = 1000
  lease    = "10s"
  checkpoint {
    method    = "self"
    signal    = "USR2"
    exit_code = 85
    every     = "10s"
    files     = ["saved/*"]
  }
}
`, script, freePorts(t, 2), epochs, dir)
	for file, text := range map[string]string{script: ringProgram, job: text} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	id, _, _ := strings.Cut(p.mustRun(t, "submit", job), ".")
	defer func() {
		if t.Failed() {
			t.Logf("events:\n%s", p.mustRun(t, "show", "--events", "0", "@ring"))
		}
	}()
	began := time.Now()
	for epoch := 0; ; epoch++ {
		saved, _, state := p.ringEvents(t)
		if saved >= epochs || state == "completed" {
			break
		}
		switch epoch % 4 {
		case 0:
			p.Command(t.Context(), "checkpoint", "@ring")
		case 1:
			p.killNode(t, []string{"n1", "n2"}[epoch/4%2])
		case 2: // one of them has to leave, and the other is saved with it
			p.mustRun(t, "hold", id+"[0]")
			awaitTrue(t, "it is held", func() bool {
				out, _, _ := p.Command(t.Context(), "jobs", id+"[0]")
				return strings.Contains(out, " held ")
			})
			p.mustRun(t, "release", id)
		}
		awaitTrue(t, fmt.Sprintf("epoch %d is committed", saved+1), func() bool {
			now, _, _ := p.ringEvents(t)
			return now > saved
		})
	}
	p.checkEpochWords(t)
	awaitTrue(t, "it has completed", func() bool {
		_, _, state := p.ringEvents(t)
		return state == "completed"
	})
	if g := p.ringEpoch(t, "@ring"); g.Epoch == 0 || g.Size <= 0 || g.Running != 0 {
		t.Errorf("its history says %+v", g)
	}
	saved, restored, _ := p.ringEvents(t)
	t.Logf("%d epochs in %v, and %d attempts went on from one", saved, time.Since(began).Round(time.Second), restored)
	if restored < 2*epochs {
		t.Errorf("%d attempts went on from an epoch", restored)
	}
	for rank := range 2 {
		text, err := os.ReadFile(filepath.Join(dir, "ring."+strconv.Itoa(rank)))
		if err != nil {
			t.Fatal(err)
		}
		steps := strings.Count(string(text), "\n")
		if string(text) != ringOutput(rank, 2, steps) || steps == 0 {
			t.Errorf("rank %d has printed %d lines, which are not those of a ring that nothing stopped", rank, steps)
		}
	}
	awaitNoImages(t, filepath.Join(p.Dir, "schedd", "checkpoints"))
}
