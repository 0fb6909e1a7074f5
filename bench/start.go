package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cgroup"
	"github.com/roost-batch/roost/startd/starter"
)

// oneStarter is a starter that the bench itself commands, as a startd would.
type oneStarter struct {
	*starter.Starter
	dir    string
	events chan starter.Event
}

// spawn starts a starter whose tasks live in the group.
func (b *bencher) spawn(name string, g *cgroup.Group) (*oneStarter, error) {
	s := &oneStarter{dir: filepath.Join(b.dir, name), events: make(chan starter.Event, 64)}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		return nil, err
	}
	opts := starter.Options{
		Binary: filepath.Join(filepath.Dir(b.roost), "roost-starter"), Dir: s.dir, Lease: time.Hour, Events: func(e starter.Event) { s.events <- e },
	}
	if g != nil && !g.Freezer() {
		opts.Join, opts.TaskGroup = g.Add, g.TaskDir()
	}
	var err error
	s.Starter, err = starter.Spawn(opts)
	return s, err
}

// end releases the starter, and its task with it.
func (s *oneStarter) end() {
	s.Release()
	for e := range s.events {
		if _, gone := e.(starter.Gone); gone {
			break
		}
	}
	s.Close()
}

func (s *oneStarter) order(number uint32, program string, args ...string) starter.Order {
	return starter.Order{
		Attempt: starter.Attempt{Job: 1, Number: number}, Executable: program, Arguments: append([]string{program}, args...), Cwd: "/",
		Environment: []string{"PATH=/usr/bin:/bin"}, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Umask: 0o022,
	}
}

// begin starts a task and waits until its processes run.
func (s *oneStarter) begin(o starter.Order) (pid int, err error) {
	if err := s.Start(o); err != nil {
		return 0, err
	}
	switch e := (<-s.events).(type) {
	case starter.Started:
		return e.PID, nil
	case starter.Exited:
		return 0, fmt.Errorf("task: %w: %+v", roost.Unavailable, e.Exit)
	default:
		return 0, fmt.Errorf("task: %w: %+v", roost.Unavailable, e)
	}
}

// finish waits until it has ended.
func (s *oneStarter) finish(a starter.Attempt) error {
	for e := range s.events {
		switch e := e.(type) {
		case starter.Exited:
			if e.Exit.Code != 0 || e.Exit.Signal != 0 || e.Exit.Step != 0 {
				return fmt.Errorf("task: %w: %+v", roost.Unavailable, e.Exit)
			}
			return s.Forget(a)
		case starter.Gone:
			return errors.Join(starter.ErrGone, e.Err)
		}
	}
	return nil
}

// startAim is what the sandbox may cost beyond fork and exec.
const startAim = 3 * time.Millisecond

// start measures /bin/true from the word to the news of its end, as a child of ours and as the task of a starter, by turns.
func (b *bencher) start() error {
	host, err := cgroup.Open(fmt.Sprintf("/roost/bench-%d", os.Getpid()))
	if err != nil {
		return err
	}
	defer host.Close()
	defer host.Sweep(nil)
	g, err := host.Make("start", cgroup.Limits{Weight: 100, Memory: roost.GiB, Pids: 1000})
	if err != nil {
		return err
	}
	s, err := b.spawn("start", g)
	if err != nil {
		return err
	}
	defer s.end()
	var plain, task samples
	for n := range 1000 {
		began := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			return err
		}
		plain = append(plain, time.Since(began))
		o := s.order(uint32(n+1), "/bin/true")
		began = time.Now()
		if _, err := s.begin(o); err != nil {
			return err
		}
		if err := s.finish(o.Attempt); err != nil {
			return err
		}
		task = append(task, time.Since(began))
	}
	more := task.at(50) - plain.at(50)
	row("/bin/true by fork and exec, to its end", "p50 %v  p99 %v", plain.at(50), plain.at(99))
	row("/bin/true as a starter's task, to its end", "p50 %v  p99 %v", task.at(50), task.at(99))
	aimed("what a task costs beyond fork and exec", more <= startAim, startAim.String(), "%v, %.1f times as much in all", more,
		float64(task.at(50))/float64(plain.at(50)))
	return nil
}

func containsLine(text, line string) bool {
	return slices.Contains(strings.Split(text, "\n"), line)
}
