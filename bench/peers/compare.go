package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/e2e"
)

// bench is one run: the systems beside each other.
type bench struct {
	options
	report report
	work   string // a directory of this run
	roost  string // the program
	alive  map[string]*remote
}

// compare measures, prints the table, and writes the files.
func compare(ctx context.Context, opt options) (err error) {
	unlock, err := usable(opt)
	if err != nil {
		return err
	}
	defer unlock()
	b := &bench{options: opt, alive: map[string]*remote{}}
	if b.work, err = os.MkdirTemp("/var/tmp", "roost-peers-run-"); err != nil { // not below /tmp, which each of Roost's jobs has for itself
		return err
	}
	defer os.RemoveAll(b.work)
	if b.roost, err = e2e.Build(ctx, b.work); err != nil {
		return err
	}
	for _, name := range []string{"qsub", "qselect"} {
		if err := os.Symlink("roost", filepath.Join(b.work, name)); err != nil {
			return err
		}
	}
	b.report = report{
		Date: time.Now().UTC().Truncate(time.Second), Machine: machine(), Stock: opt.stock, Rounds: opt.rounds, Sizes: opt.sizes, Systems: opt.systems,
		Version: map[string]string{},
	}
	b.report.plan(opt.only)
	cut := b.measureAll(ctx) // an interrupt: what has been measured by then is worth something, too
	b.end()
	b.report.conclude()
	if err := b.report.table(os.Stdout); err != nil {
		return err
	}
	return errors.Join(b.report.write(opt.out), cut)
}

// usable sees to it that this can work at all, and that nobody else does the same.
func usable(opt options) (unlock func(), err error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("only root can make namespaces, and run daemons that become other users")
	}
	if slices.Equal(opt.systems, []string{"roost"}) {
		return func() {}, nil
	}
	file, err := os.OpenFile(filepath.Join(opt.root, "ready"), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: there is no Debian with the other systems: run bench/peers/install.sh", opt.root)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: another run uses it", opt.root)
	}
	return func() { file.Close() }, nil
}

// measureAll does the rounds first, then what is measured once, and at last the matching, for which each system is started anew.
func (b *bench) measureAll(ctx context.Context) error {
	var before, rounds, once, cells []measure
	for _, m := range measures() {
		switch {
		case b.only != nil && !slices.Contains(b.only, m.name):
		case m.rounds:
			rounds = append(rounds, m)
		case m.cell:
			cells = append(cells, m)
		case len(rounds) == 0 && m.name == "idle":
			before = append(before, m)
		default:
			once = append(once, m)
		}
	}
	b.pass(ctx, "", before)
	for round := range b.rounds {
		b.pass(ctx, fmt.Sprintf("round %d of %d, ", round+1, b.rounds), rounds)
	}
	b.pass(ctx, "", once)
	b.end()
	for _, m := range cells {
		for _, system := range b.systems {
			b.turn(ctx, "", m, 0, system)
			b.endOne(system)
		}
	}
	if ctx.Err() != nil {
		return errors.New("interrupted: this is what had been measured")
	}
	return nil
}

// pass makes each measure with one system after the other.
func (b *bench) pass(ctx context.Context, where string, list []measure) {
	for _, m := range list {
		for _, n := range m.numbers(b.sizes) {
			for _, system := range b.systems {
				b.turn(ctx, where, m, n, system)
			}
		}
	}
}

// turn has one system make one measure; one that does not answer is started anew for the next.
func (b *bench) turn(ctx context.Context, where string, m measure, n int, system string) {
	if ctx.Err() != nil {
		return
	}
	what := m.name
	if n > 0 {
		what += fmt.Sprint(" ", n)
	}
	fmt.Fprintf(os.Stderr, "peers: %s%s, %s", where, what, title(system))
	began := time.Now()
	ans := b.ask(ctx, system, m.cell, order{Measure: m.name, Count: n, Sizes: b.sizes, Seconds: b.limit.Seconds()})
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr)
		return
	}
	verdict := ""
	if ans.Error != "" {
		verdict = ": " + firstLine(ans.Error)
	}
	fmt.Fprintf(os.Stderr, ", %.0f s%s\n", time.Since(began).Seconds(), verdict)
	b.report.take(m, n, system, ans)
	if ans.Error != "" {
		b.endOne(system) // whatever state it is in
	}
}

// ask gives an order to the system's agent, and starts that if it is not there.
func (b *bench) ask(ctx context.Context, system string, cell bool, o order) answer {
	r := b.alive[system]
	if r == nil {
		var err error
		if r, err = b.start(system, cell); err != nil {
			return answer{Error: err.Error()}
		}
		b.alive[system] = r
		hello := r.read(ctx, r.startLimit()+time.Minute)
		if hello.Error != "" {
			b.endOne(system)
			return hello
		}
		b.report.Version[system] = hello.Note
	}
	if err := r.orders.Encode(o); err != nil {
		return answer{Error: fmt.Sprintf("the agent has gone: %v", err)}
	}
	return r.read(ctx, b.limit+time.Minute)
}

// remote is an agent in its namespaces.
type remote struct {
	place
	cmd     *exec.Cmd
	in      io.WriteCloser
	orders  *json.Encoder
	answers chan answer // closed when it has ended
	leave   func()      // removes its control group
}

func (b *bench) start(system string, cell bool) (*remote, error) {
	p := place{System: system, Stock: b.stock}
	if system == "roost" {
		p.Work, p.Roost = filepath.Join(b.work, "roost-"+time.Now().Format("150405")), b.roost
	} else {
		p.Root, p.Work = b.root, "/bench/"+system
	}
	if cell {
		p.Cell = b.sizes.Machines
	}
	cmd, err := namespaces(p)
	if err != nil {
		return nil, err
	}
	r := &remote{place: p, cmd: cmd, answers: make(chan answer)}
	if r.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("make namespaces: %w", err)
	}
	if r.leave, err = even(fmt.Sprintf("peers-%s-%d", system, cmd.Process.Pid), cmd.Process.Pid); err != nil {
		r.leave = func() {}
		fmt.Fprintf(os.Stderr, "peers: %s has no control group for CPU time: measure on a quiet machine: %v\n", title(system), err)
	}
	if _, err := r.in.Write([]byte(goOn)); err != nil {
		return nil, err
	}
	r.orders = json.NewEncoder(r.in)
	go func() {
		defer close(r.answers)
		for in := json.NewDecoder(out); ; {
			var ans answer
			if in.Decode(&ans) != nil {
				return
			}
			r.answers <- ans
		}
	}()
	return r, nil
}

// read waits for an answer.
func (r *remote) read(ctx context.Context, limit time.Duration) answer {
	select {
	case ans, ok := <-r.answers:
		if !ok {
			return answer{Error: "the agent has ended without an answer"}
		}
		return ans
	case <-time.After(limit):
		return answer{Error: fmt.Sprintf("no answer after %v", limit)}
	case <-ctx.Done():
		return answer{Error: ctx.Err().Error()}
	}
}

// graceful is how long a system may take to end in order.
const graceful = 40 * time.Second

// endOne has the agent end its system, and the kernel what is left in its namespaces.
func (b *bench) endOne(system string) {
	r := b.alive[system]
	if r == nil {
		return
	}
	delete(b.alive, system)
	r.in.Close()
	late := time.AfterFunc(graceful, func() { syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL) })
	for range r.answers { // until it closes its end
	}
	r.cmd.Wait()
	late.Stop()
	r.leave()
	os.RemoveAll(filepath.Join(b.root, "bench", system))
}

func (b *bench) end() {
	for _, system := range b.systems {
		b.endOne(system)
	}
}

// machine says on what this was measured.
func machine() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	model := "unknown processor"
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	var u unix.Utsname
	unix.Uname(&u)
	load, _ := os.ReadFile("/proc/loadavg")
	before, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("%d cores of %s, Linux %s, load %s at first", runtime.NumCPU(), model, unix.ByteSliceToString(u.Release[:]), before)
}

// write writes the files of results.
func (r *report) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{"peers.json": r.writeJSON, "peers.csv": r.writeCSV, "peers.svg": r.picture} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		err = write(f)
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	fmt.Printf("The same, with every value, is in %s: peers.json, peers.csv and peers.svg.\n", dir)
	return nil
}
