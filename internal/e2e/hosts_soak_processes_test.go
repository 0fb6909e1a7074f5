package e2e

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// heartbeatSpan is an attempt as the tasks themselves report it.
type heartbeatSpan struct {
	key string
	attemptRecord
}

// checkNoProcesses checks that no process of a task is left when all have ended and every
// lease is over (P10).
func (s *soakPool) checkNoProcesses() {
	s.Helper()
	var left []heartbeatSpan
	for late := time.Now().Add(time.Duration(float64(shortLease+deathDelay) * scaledTimeout().Minutes())); ; waitReal(
		s.Context(), 200*time.Millisecond,
	) {
		if left = slices.Collect(maps.Keys(s.taskProcesses())); len(left) == 0 {
			return
		}
		if time.Now().After(late) {
			s.totals.otherErrors += len(left)
			s.Errorf("P10: all tasks have ended, and of these there are processes: %v", left)
			return
		}
	}
}

// recordProcesses records twice a second which attempts have processes, by the
// environment of the processes. It runs until ctx is done.
func (s *soakPool) recordProcesses(ctx context.Context) {
	for ; ctx.Err() == nil; waitReal(ctx, 500*time.Millisecond) {
		now := s.taskProcesses()
		s.mu.Lock()
		maps.Copy(s.lastSeen, now)
		s.mu.Unlock()
	}
}

// taskProcesses returns the attempts that have processes, and when each was seen.
func (s *soakPool) taskProcesses() map[heartbeatSpan]time.Time {
	all := map[heartbeatSpan]time.Time{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		now := time.Now()
		env, _ := os.ReadFile(dir + "/environ")
		if !bytes.Contains(env, []byte("ROOST_SOAK="+s.dir+"/")) {
			continue
		}
		var b heartbeatSpan
		for field := range strings.SplitSeq(string(env), "\x00") {
			name, value, _ := strings.Cut(field, "=")
			switch name {
			case "ROOST_SOAK":
				b.key = filepath.Base(value)
			case "ROOST_TASK_INDEX":
				b.index, _ = strconv.Atoi(value)
			case "ROOST_ATTEMPT":
				b.number, _ = strconv.Atoi(value)
			}
		}
		if b.number > 0 {
			all[b] = now
		}
	}
	return all
}

// checkUsageGrowth checks that usage only grows, and by no more than the pool has (P6).
func (s *soakPool) checkUsageGrowth() {
	s.Helper()
	var all struct{ Submitters []submitterRecord }
	if !s.askUntilAnswered(&all, "shares") {
		return
	}
	cores := 0
	for _, n := range s.availableCores() {
		cores += n
	}
	sum := 0.0
	for _, u := range all.Submitters {
		if u.Real < 0 || u.Hours < s.lastUsed[u.User] {
			s.Errorf("P6: %+v, who had used %v core-hours", u, s.lastUsed[u.User])
		}
		s.lastUsed[u.User] = u.Hours
		sum += u.Hours
	}
	if most := float64(cores) * time.Since(s.began).Hours(); sum > most || sum == 0 && s.totals.tasks > 100 {
		s.Errorf("P6: %v core-hours were charged, and the pool has had %v", sum, most)
	}
}

// askUntilAnswered repeats a query until there is an answer.
func (s *soakPool) askUntilAnswered(into any, what string) bool {
	for late := time.Now().Add(scaledTimeout()); ; waitReal(s.Context(), 200*time.Millisecond) {
		if s.hostPool.queryJSON(into, what) {
			return true
		}
		if time.Now().After(late) {
			s.Errorf("P9: nobody answers roost %s", what)
			return false
		}
	}
}

// removeRoundFiles removes the files of the round's tasks, which have been audited.
func (s *soakPool) removeRoundFiles() {
	for _, pattern := range []string{"ledger-soak*", "gate-soak*", "locks/*", "home*/*"} {
		all, _ := filepath.Glob(filepath.Join(s.dir, pattern))
		for _, path := range all {
			if err := os.RemoveAll(path); err != nil {
				s.Error(err)
			}
		}
	}
}
