package e2e

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxBacklog is the number of tasks at which the users submit no more until some end.
// What remains at the last fault then takes far less than the minute of P9, also on a
// slow machine.
const maxBacklog = 60

// backlog counts the acknowledged tasks that have not written that they ended.
func (s *faultPool) backlog() (tasks int) {
	ended := map[string]bool{}
	for line := range s.countRuns() {
		if of, ok := strings.CutPrefix(line, "end "); ok {
			ended[strings.Fields(of)[0]] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.acknowledged {
		tasks += n
	}
	return tasks - len(ended)
}

// countRuns counts the lines that the tasks wrote.
func (s *faultPool) countRuns() map[string]int {
	lines := map[string]int{}
	f, err := os.Open(filepath.Join(s.ledger, "runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return lines // nothing has started yet
	}
	if err != nil {
		s.Error(err)
		return lines
	}
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		lines[scan.Text()]++
	}
	return lines
}
