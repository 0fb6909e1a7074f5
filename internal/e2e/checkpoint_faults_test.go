package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hostIsLost crashes a host: its tasks resume elsewhere from their checkpoints.
func (s *checkpointPool) hostIsLost() {
	node, list := s.busyHost()
	least := s.takeCheckpoints(list)
	s.nodes[node].endProcesses()
	s.checkResumed(least, node)
	s.nodes[node].start()
}

// endProcesses kills everything on the host, as a power loss does.
func (n *testHost) endProcesses() {
	n.net.crashHost(n.name)
	<-n.done
}

// hostIsStopped shuts a host down. Its tasks are checkpointed while frozen, so no work is
// lost.
func (s *checkpointPool) hostIsStopped() {
	node, list := s.busyHost()
	least := map[*checkpointedTask]int{}
	for _, task := range list {
		_, least[task] = s.awaitRunning(task)
	}
	s.nodes[node].stopMaster()
	s.checkResumed(least, node)
	s.nodes[node].start()
}

// startdAndTasksAreKilled kills the startd with its starters and tasks, and restarts it
// at once. The tasks may resume on the same host.
func (s *checkpointPool) startdAndTasksAreKilled() {
	node, list := s.busyHost()
	least := s.takeCheckpoints(list)
	startd := s.nodes[node].daemonPID("startd")
	syscall.Kill(startd, syscall.SIGKILL)
	for _, pid := range s.starters(node) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	s.checkResumed(least, "")
}

// startersAreKilled kills the starters, and with them the tasks.
func (s *checkpointPool) startersAreKilled() {
	node, list := s.busyHost()
	least := s.takeCheckpoints(list)
	for _, pid := range s.starters(node) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	s.checkResumed(least, "")
}

// starters lists the starters of a host.
func (s *checkpointPool) starters(node string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		args, _ := os.ReadFile(dir + "/cmdline")
		if words := strings.Split(string(args), "\x00"); filepath.Base(words[0]) == "roost-starter" &&
			strings.Contains(string(args), filepath.Join(s.dir, node)+"/") {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

// startdIsKilledAtCheckpoint kills the startd during a checkpoint. Its tasks continue in
// the same attempt, and none stays frozen.
func (s *checkpointPool) startdIsKilledAtCheckpoint() {
	node, list := s.busyHost()
	for _, task := range list {
		s.mustAsOwner(task, "checkpoint", "--no-wait", task.id)
	}
	late := time.NewTimer(time.Duration(s.rng.IntN(400)) * time.Millisecond)
	<-late.C
	before := s.nodes[node].daemonPID("startd")
	syscall.Kill(before, syscall.SIGKILL)
	s.awaitTrue("another startd serves", func() bool {
		now := s.nodes[node].daemonPID("startd")
		return now != 0 && now != before
	})
	for _, task := range list {
		attempt := task.attempt
		if s.awaitRunning(task); task.attempt != attempt {
			s.Errorf("%s: attempt %d was lost with the startd", task.name, attempt)
		}
	}
}

// heldJobsAreCheckpointed holds jobs, which checkpoints them, and releases them.
func (s *checkpointPool) heldJobsAreCheckpointed() {
	_, list := s.busyHost()
	least := map[*checkpointedTask]int{}
	for _, task := range list {
		_, least[task] = s.awaitRunning(task)
		s.mustAsOwner(task, "hold", task.id)
	}
	for _, task := range list {
		s.awaitTrue(task.name+" is held", func() bool { return s.showTask(task.id).State == "held" })
		s.mustAsOwner(task, "release", task.id)
	}
	s.checkResumed(least, "")
}

// suspendedJobIsCheckpointed checkpoints a suspended job. It stays suspended, and later
// resumes there or elsewhere.
func (s *checkpointPool) suspendedJobIsCheckpointed() {
	node, list := s.busyHost()
	for _, task := range list {
		s.mustAsOwner(task, "suspend", task.id)
	}
	least := s.takeCheckpoints(list)
	for _, task := range list {
		if got := s.showTask(task.id).State; got != "suspended" {
			s.Errorf("%s is %s after it was saved", task.name, got)
		}
		n := s.printedLines(task, task.attempt, node)
		least[task] = n
	}
	for i, task := range list {
		if n := s.printedLines(task, task.attempt, node); n != least[task] {
			s.Errorf("%s: %d lines while it is suspended, and then %d", task.name, least[task], n)
		}
		if i%2 == 0 {
			s.mustAsOwner(task, "resume", task.id)
			s.awaitRunning(task)
		}
	}
	s.nodes[node].endProcesses()
	for i, task := range list {
		if i%2 != 0 { // it is idle, or counts as suspended while its lease lasts
			s.awaitFor(3*awaitTimeout, task.name+" is given up", func() bool {
				return s.showTask(task.id).State != "suspended"
			})
		}
	}
	s.checkResumed(least, node)
	s.nodes[node].start()
}
