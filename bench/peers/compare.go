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

// comparisonRun is one run with all systems.
type comparisonRun struct {
	benchOptions
	report  comparisonReport
	workDir string // a directory of this run
	roost   string // path of the program
	agents  map[string]*remoteAgent
}

// runComparison measures, prints the table, and writes the files.
func runComparison(ctx context.Context, opt benchOptions) (err error) {
	unlock, err := checkPrerequisites(opt)
	if err != nil {
		return err
	}
	defer unlock()
	b := &comparisonRun{benchOptions: opt, agents: map[string]*remoteAgent{}}
	// not below /tmp, because each of Roost's jobs has its own
	if b.workDir, err = os.MkdirTemp("/var/tmp", "roost-peers-run-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.workDir)
	if b.roost, err = e2e.Build(ctx, b.workDir); err != nil {
		return err
	}
	for _, name := range []string{"qsub", "qselect"} {
		if err := os.Symlink("roost-q", filepath.Join(b.workDir, name)); err != nil {
			return err
		}
	}
	b.report = comparisonReport{
		Date: time.Now().UTC().Truncate(time.Second), Machine: machineText(), Stock: opt.stock, Rounds: opt.rounds,
		Sizes: opt.sizes, Systems: opt.systems,
		Version: map[string]string{},
	}
	b.report.addLines(opt.measures)
	cut := b.measureAll(ctx) // after an interrupt, the finished results are still printed
	b.endAll()
	b.report.computeRatios()
	if err := b.report.printTable(os.Stdout); err != nil {
		return err
	}
	return errors.Join(b.report.writeFiles(opt.out), cut)
}

// checkPrerequisites checks that the run is possible, and that no other run is in
// progress.
func checkPrerequisites(opt benchOptions) (unlock func(), err error) {
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

// measureAll runs the rounds first, then the single measurements, and last the matching,
// for which each system is started again.
func (b *comparisonRun) measureAll(ctx context.Context) error {
	var before, rounds, once, cells []systemMeasure
	for _, m := range systemMeasures() {
		switch {
		case b.measures != nil && !slices.Contains(b.measures, m.name):
		case m.perRound:
			rounds = append(rounds, m)
		case m.needsCell:
			cells = append(cells, m)
		case len(rounds) == 0 && m.name == "idle":
			before = append(before, m)
		default:
			once = append(once, m)
		}
	}
	b.runPass(ctx, "", before)
	for round := range b.rounds {
		b.runPass(ctx, fmt.Sprintf("round %d of %d, ", round+1, b.rounds), rounds)
	}
	b.runPass(ctx, "", once)
	b.endAll()
	for _, m := range cells {
		for _, system := range b.systems {
			b.runMeasure(ctx, "", m, 0, system)
			b.endAgent(system)
		}
	}
	if ctx.Err() != nil {
		return errors.New("interrupted: this is what had been measured")
	}
	return nil
}

// runPass makes each measurement with one system after the other.
func (b *comparisonRun) runPass(ctx context.Context, where string, list []systemMeasure) {
	for _, m := range list {
		for _, n := range m.jobCountList(b.sizes) {
			for _, system := range b.systems {
				b.runMeasure(ctx, where, m, n, system)
			}
		}
	}
}

// runMeasure makes one measurement with one system. A system that does not answer is
// started again for the next one.
func (b *comparisonRun) runMeasure(ctx context.Context, where string, m systemMeasure, n int, system string) {
	if ctx.Err() != nil {
		return
	}
	what := m.name
	if n > 0 {
		what += fmt.Sprint(" ", n)
	}
	fmt.Fprintf(os.Stderr, "peers: %s%s, %s", where, what, systemTitle(system))
	began := time.Now()
	ans := b.sendOrder(ctx, system, m.needsCell,
		measureSpec{Measure: m.name, Count: n, Sizes: b.sizes, TimeoutSeconds: b.limit.Seconds()})
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr)
		return
	}
	verdict := ""
	if ans.Error != "" {
		verdict = ": " + firstLine(ans.Error)
	}
	fmt.Fprintf(os.Stderr, ", %.0f s%s\n", time.Since(began).Seconds(), verdict)
	b.report.addAnswer(m, n, system, ans)
	if ans.Error != "" {
		b.endAgent(system) // whatever state it is in
	}
}

// sendOrder sends an order to the system's agent, and starts a missing one.
func (b *comparisonRun) sendOrder(ctx context.Context, system string, cell bool, o measureSpec) measureResult {
	r := b.agents[system]
	if r == nil {
		var err error
		if r, err = b.startAgent(system, cell); err != nil {
			return measureResult{Error: err.Error()}
		}
		b.agents[system] = r
		hello := r.readAnswer(ctx, r.startLimit()+time.Minute)
		if hello.Error != "" {
			b.endAgent(system)
			return hello
		}
		b.report.Version[system] = hello.Note
	}
	if err := r.orders.Encode(o); err != nil {
		return measureResult{Error: fmt.Sprintf("the agent has gone: %v", err)}
	}
	return r.readAnswer(ctx, b.limit+time.Minute)
}

// remoteAgent is an agent in its namespaces.
type remoteAgent struct {
	namespaceConfig
	cmd          *exec.Cmd
	in           io.WriteCloser
	orders       *json.Encoder
	answers      chan measureResult // closed when it has ended
	removeCgroup func()             // removes its control group
}

func (b *comparisonRun) startAgent(system string, cell bool) (*remoteAgent, error) {
	p := namespaceConfig{System: system, Stock: b.stock}
	if system == "roost" {
		p.Work, p.Roost = filepath.Join(b.workDir, "roost-"+time.Now().Format("150405")), b.roost
	} else {
		p.Root, p.Work = b.root, "/bench/"+system
	}
	if cell {
		p.Cell = b.sizes.Machines
	}
	cmd, err := runInNamespaces(p)
	if err != nil {
		return nil, err
	}
	r := &remoteAgent{namespaceConfig: p, cmd: cmd, answers: make(chan measureResult)}
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
	if r.removeCgroup, err = joinSharedCgroup(fmt.Sprintf("peers-%s-%d", system, cmd.Process.Pid),
		cmd.Process.Pid); err != nil {
		r.removeCgroup = func() {}
		fmt.Fprintf(os.Stderr, "peers: %s has no control group for CPU time: measure on a quiet machine: %v\n",
			systemTitle(system), err)
	}
	if _, err := r.in.Write([]byte(startWord)); err != nil {
		return nil, err
	}
	r.orders = json.NewEncoder(r.in)
	go func() {
		defer close(r.answers)
		for in := json.NewDecoder(out); ; {
			var ans measureResult
			if in.Decode(&ans) != nil {
				return
			}
			r.answers <- ans
		}
	}()
	return r, nil
}

// readAnswer waits for an answer.
func (r *remoteAgent) readAnswer(ctx context.Context, limit time.Duration) measureResult {
	select {
	case ans, ok := <-r.answers:
		if !ok {
			return measureResult{Error: "the agent has ended without an answer"}
		}
		return ans
	case <-time.After(limit):
		return measureResult{Error: fmt.Sprintf("no answer after %v", limit)}
	case <-ctx.Done():
		return measureResult{Error: ctx.Err().Error()}
	}
}

// gracefulTimeout is how long a system may take to stop in order.
const gracefulTimeout = 40 * time.Second

// endAgent lets the agent stop its system, and the kernel kill the rest in its
// namespaces.
func (b *comparisonRun) endAgent(system string) {
	r := b.agents[system]
	if r == nil {
		return
	}
	delete(b.agents, system)
	r.in.Close()
	late := time.AfterFunc(gracefulTimeout, func() { syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL) })
	for range r.answers { // until it closes its end
	}
	r.cmd.Wait()
	late.Stop()
	r.removeCgroup()
	os.RemoveAll(filepath.Join(b.root, "bench", system))
}

func (b *comparisonRun) endAll() {
	for _, system := range b.systems {
		b.endAgent(system)
	}
}

// machineText describes the machine of the run.
func machineText() string {
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
	return fmt.Sprintf("%d cores of %s, Linux %s, load %s at first", runtime.NumCPU(), model,
		unix.ByteSliceToString(u.Release[:]), before)
}

// writeFiles writes the result files.
func (r *comparisonReport) writeFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{"peers.json": r.writeJSON, "peers.csv": r.writeCSV,
		"peers.svg": r.drawCharts} {
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
