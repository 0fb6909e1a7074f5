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
	"github.com/roost-batch/roost/bench/gauge"
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

// order is a task that is to run as that user, in a box unless the bench may make none.
func (s *oneStarter) order(number uint32, uid int, boxed bool, program string, args ...string) (starter.Order, error) {
	o := starter.Order{
		Attempt: starter.Attempt{Job: 1, Number: number}, Executable: program, Arguments: append([]string{program}, args...), Cwd: "/",
		Environment: []string{"PATH=/usr/bin:/bin"}, UID: uint32(uid), GID: uint32(uid), Umask: 0o022,
		IO: filepath.Join(s.dir, "io"), // as in a startd, for one task after the other
	}
	if err := os.MkdirAll(o.IO, 0o711); err != nil {
		return o, err
	}
	if boxed && os.Geteuid() == 0 {
		o.Box.Wanted, o.Box.Temp = true, filepath.Join(s.dir, fmt.Sprint("tmp-", uid))
		if err := os.MkdirAll(o.Box.Temp, 0o700); err != nil {
			return o, err
		}
		return o, os.Chown(o.Box.Temp, uid, uid)
	}
	return o, nil
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

// nobody is a user with no rights; only root can run something as him.
const nobody = 65534

// start measures /bin/true from the word to the news of its end, by turns as a child of ours, as a starter's task, and as one in a box of its
// own; the last one as a user, if we are root.
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
	user := os.Geteuid()
	if user == 0 {
		user = nobody
	}
	var plain, task, boxed gauge.Samples
	for n := range uint32(1000) {
		began := time.Now()
		if err := exec.Command("/bin/true").Run(); err != nil {
			return err
		}
		plain = append(plain, time.Since(began))
		if err := s.timed(&task, 2*n+1, os.Geteuid(), false); err != nil {
			return err
		}
		if err := s.timed(&boxed, 2*n+2, user, true); err != nil {
			return err
		}
	}
	more := boxed.At(50) - plain.At(50)
	b.row("/bin/true by fork and exec, to its end", "p50 %v  p99 %v", plain.At(50), plain.At(99))
	b.row("/bin/true as a starter's task, to its end", "p50 %v  p99 %v", task.At(50), task.At(99))
	b.row("/bin/true in the full sandbox, to its end", "p50 %v  p99 %v", boxed.At(50), boxed.At(99))
	b.aimed("what the sandbox costs beyond fork and exec", more <= startAim, startAim.String(), "%v, %.1f times as much in all", more,
		float64(boxed.At(50))/float64(plain.At(50)))
	return nil
}

// timed runs one task.
func (s *oneStarter) timed(took *gauge.Samples, number uint32, uid int, boxed bool) error {
	o, err := s.order(number, uid, boxed, "/bin/true")
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := s.begin(o); err != nil {
		return err
	}
	if err := s.finish(o.Attempt); err != nil {
		return err
	}
	*took = append(*took, time.Since(began))
	return errors.Join(os.RemoveAll(o.IO), os.RemoveAll(filepath.Join(s.dir, fmt.Sprint("tmp-", number))))
}

func containsLine(text, line string) bool {
	return slices.Contains(strings.Split(text, "\n"), line)
}
