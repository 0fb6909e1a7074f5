package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A host loses its power: its tasks go on elsewhere from their checkpoints.
func (s *saves) hostIsLost() {
	node, list := s.busy()
	least := s.save(list)
	s.nodes[node].end()
	s.goesOn(least, node)
	s.nodes[node].start()
}

// end ends everything on the host, as a loss of power does.
func (n *host) end() {
	n.net.crash(n.name)
	<-n.done
}

// A host is stopped in order: its tasks are saved on the way out, frozen, so that nothing is lost at all.
func (s *saves) hostIsStopped() {
	node, list := s.busy()
	least := map[*savedTask]int{}
	for _, task := range list {
		_, least[task] = s.runs(task)
	}
	s.nodes[node].stop()
	s.goesOn(least, node)
	s.nodes[node].start()
}

// The startd is killed with its starters and tasks, and comes again at once: the tasks may go on on the same host.
func (s *saves) allIsKilled() {
	node, list := s.busy()
	least := s.save(list)
	startd := s.nodes[node].daemon("startd")
	syscall.Kill(startd, syscall.SIGKILL)
	for _, pid := range s.starters(node) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	s.goesOn(least, "")
}

// The starters die, and with them the tasks.
func (s *saves) startersAreKilled() {
	node, list := s.busy()
	least := s.save(list)
	for _, pid := range s.starters(node) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	s.goesOn(least, "")
}

// starters lists the starters of a host.
func (s *saves) starters(node string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		args, _ := os.ReadFile(dir + "/cmdline")
		if words := strings.Split(string(args), "\x00"); filepath.Base(words[0]) == "roost-starter" && strings.Contains(string(args), filepath.Join(s.dir, node)+"/") {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

// The startd is killed at some moment of a checkpoint: its tasks run on in the same attempt, and nothing stays frozen.
func (s *saves) startdIsKilledSaving() {
	node, list := s.busy()
	for _, task := range list {
		s.mustFor(task, "checkpoint", "--no-wait", task.id)
	}
	late := time.NewTimer(time.Duration(s.rng.IntN(400)) * time.Millisecond)
	<-late.C
	before := s.nodes[node].daemon("startd")
	syscall.Kill(before, syscall.SIGKILL)
	s.await("another startd serves", func() bool { now := s.nodes[node].daemon("startd"); return now != 0 && now != before })
	for _, task := range list {
		attempt := task.attempt
		if s.runs(task); task.attempt != attempt {
			s.Errorf("%s: attempt %d was lost with the startd", task.name, attempt)
		}
	}
}

// Jobs are held, which saves them, and released.
func (s *saves) jobsAreHeld() {
	_, list := s.busy()
	least := map[*savedTask]int{}
	for _, task := range list {
		_, least[task] = s.runs(task)
		s.mustFor(task, "hold", task.id)
	}
	for _, task := range list {
		s.await(task.name+" is held", func() bool { return s.show(task.id).State == "held" })
		s.mustFor(task, "release", task.id)
	}
	s.goesOn(least, "")
}

// A suspended job is saved, stays suspended, and goes on from there elsewhere or where it is.
func (s *saves) suspendedAreSaved() {
	node, list := s.busy()
	for _, task := range list {
		s.mustFor(task, "suspend", task.id)
	}
	least := s.save(list)
	for _, task := range list {
		if got := s.show(task.id).State; got != "suspended" {
			s.Errorf("%s is %s after it was saved", task.name, got)
		}
		n := s.lines(task, task.attempt, node)
		least[task] = n
	}
	for i, task := range list {
		if n := s.lines(task, task.attempt, node); n != least[task] {
			s.Errorf("%s: %d lines while it is suspended, and then %d", task.name, least[task], n)
		}
		if i%2 == 0 {
			s.mustFor(task, "resume", task.id)
			s.runs(task)
		}
	}
	s.nodes[node].end()
	for i, task := range list {
		if i%2 != 0 { // it is idle, or suspended as long as its lease is believed
			s.awaitFor(3*patience, task.name+" is given up", func() bool { return s.show(task.id).State != "suspended" })
		}
	}
	s.goesOn(least, node)
	s.nodes[node].start()
}
