package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// namedTasks is how many tasks are killed, each once. A task that ends often waits before
// it starts again, or moves.
const namedTasks = 60

// Aims for the names of services.
const (
	nameGoneAim   = 500 * time.Millisecond // p99
	nameSilentAim = 16 * time.Second       // 15 s, and a round of the collector
	nameTimeout   = time.Minute            // for one change
)

// namedService watches the names of a service.
type namedService struct {
	*poolBencher
	id      string
	mark    string // an argument of its tasks that no other process has
	updates chan *wire.NamesUpdate
	shown   map[uint32]*wire.ServiceEndpoint // by index
}

func newNamedService(b *poolBencher) *namedService {
	return &namedService{poolBencher: b, mark: "names-of-" + filepath.Base(b.dir) + strconv.Itoa(os.Getpid()),
		updates: make(chan *wire.NamesUpdate, 1024), shown: map[uint32]*wire.ServiceEndpoint{}}
}

// measureNames kills tasks of a service, and then has its machine fall silent. It
// measures until a watch of names says so. DNS answers are made of the same names.
func measureNames(b *poolBencher) error {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	s := newNamedService(b)
	if err := s.start(ctx); err != nil {
		return err
	}
	gone, err := s.measureDeaths()
	if err != nil {
		return err
	}
	b.addAimedRow("a task of a service is killed until its name is gone", gone.Percentile(99) <= nameGoneAim,
		nameGoneAim.String(), "p50 %v  p99 %v", gone.Percentile(50), gone.Percentile(99))
	silent, back, err := s.measureSilence()
	if err != nil {
		return err
	}
	b.addAimedRow("a machine falls silent until its names are lost", silent <= nameSilentAim, nameSilentAim.String(),
		"%v", silent)
	b.addRow("the machine speaks again until its names are back", "%v", back)
	_, err = b.pool.Client.Act(b.ctx, &wire.ActRequest{
		Verb: wire.ActRequest_REMOVE, Force: true, Selection: &wire.Selection{Selectors: []string{s.id}},
	})
	return rpc.FromStatus(err)
}

// start submits the service, and watches its names until all tasks are ready.
func (s *namedService) start(ctx context.Context) error {
	file := filepath.Join(s.pool.Dir, "names.hcl")
	text := fmt.Sprintf("job \"names\" {\n  command = [\"/bin/sh\", \"-c\", \"sleep 100000; true\", %q]\n"+
		"  count = %d\n  cpus = 0.1\n  memory = \"5MiB\"\n  service {}\n  port \"http\" {}\n}\n", s.mark, namedTasks)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	out, errs, code := s.pool.Command(ctx, "submit", "-q", file)
	if code != 0 {
		return fmt.Errorf("roost submit: %s", errs)
	}
	s.id = strings.TrimSpace(out)
	if err := s.watch(ctx, "names"); err != nil {
		return err
	}
	return s.await("all tasks are ready", func() bool {
		for i := range uint32(namedTasks) {
			if s.shown[i].GetState() != "ready" {
				return false
			}
		}
		return true
	})
}

// watch watches the names of the jobs of a name; empty: of all jobs.
func (s *namedService) watch(ctx context.Context, name string) error {
	stream, err := s.pool.Client.Names(ctx, &wire.NamesQuery{Name: name, Watch: true})
	if err != nil {
		return rpc.FromStatus(err)
	}
	go func() {
		defer close(s.updates)
		for {
			u, err := stream.Recv()
			if err != nil {
				return
			}
			s.updates <- u
		}
	}()
	return nil
}

// await takes in changes of the names until something is so.
func (s *namedService) await(what string, is func() bool) error {
	late := time.After(nameTimeout)
	for !is() {
		select {
		case u, ok := <-s.updates:
			if !ok {
				return fmt.Errorf("the watch of names: %w", roost.Unavailable)
			}
			s.apply(u)
		case <-late:
			return fmt.Errorf("%s: %w: not within %v", what, roost.Unavailable, nameTimeout)
		}
	}
	return nil
}

func (s *namedService) apply(u *wire.NamesUpdate) {
	if u.GetFull() {
		clear(s.shown)
	}
	for _, e := range u.GetEndpoints() {
		s.shown[e.GetKey().GetIndex()] = e
	}
	for _, k := range u.GetRemoved() {
		delete(s.shown, k.GetIndex())
	}
}

// measureDeaths kills each task once.
func (s *namedService) measureDeaths() (gone gauge.DurationSamples, err error) {
	pids, err := s.processes()
	if err != nil {
		return nil, err
	}
	for index, pid := range pids {
		before := s.shown[index].GetAttempt()
		began := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return nil, err
		}
		if err := s.await("the name of a killed task is gone", func() bool {
			e := s.shown[index]
			return e == nil || e.GetAttempt() != before
		}); err != nil {
			return nil, err
		}
		gone = append(gone, time.Since(began))
	}
	return gone, nil
}

// processes returns the first process of each task by its index.
func (s *namedService) processes() (map[uint32]int, error) {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	pids := map[uint32]int{}
	for _, file := range all {
		line, _ := os.ReadFile(file)
		if !slices.Contains(strings.Split(string(line), "\x00"), s.mark) {
			continue
		}
		environment, err := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		if err != nil {
			continue // it has ended
		}
		for v := range strings.SplitSeq(string(environment), "\x00") {
			if text, ok := strings.CutPrefix(v, "ROOST_TASK_INDEX="); ok {
				index, err := strconv.ParseUint(text, 10, 32)
				pid, pidErr := strconv.Atoi(filepath.Base(filepath.Dir(file)))
				if err == nil && pidErr == nil {
					pids[uint32(index)] = pid
				}
			}
		}
	}
	if len(pids) != namedTasks {
		return nil, fmt.Errorf("processes of %d tasks: %w: %d are found", namedTasks, roost.NotFound, len(pids))
	}
	return pids, nil
}

// measureSilence stops the startd until its names are lost, and has it go on.
func (s *namedService) measureSilence() (silent, back time.Duration, err error) {
	state := func(want string) func() bool {
		return func() bool {
			for _, e := range s.shown {
				if (e.GetState() == "lost") != (want == "lost") {
					return false
				}
			}
			return len(s.shown) > 0
		}
	}
	startd, err := s.startdPID()
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := syscall.Kill(startd.PID, syscall.SIGSTOP); err != nil {
		return 0, 0, err
	}
	defer syscall.Kill(startd.PID, syscall.SIGCONT)
	if err := s.await("the names of a silent machine are lost", state("lost")); err != nil {
		return 0, 0, err
	}
	silent, began = time.Since(began), time.Now()
	if err := syscall.Kill(startd.PID, syscall.SIGCONT); err != nil {
		return 0, 0, err
	}
	err = s.await("the names are back", state("back"))
	return silent, time.Since(began), err
}
