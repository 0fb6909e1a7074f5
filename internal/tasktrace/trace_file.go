package tasktrace

import (
	"bytes"
	"strconv"
)

// StageRecord is one line of a trace.
type StageRecord struct {
	At    int64 // nanoseconds of CLOCK_MONOTONIC
	Stage string
	Task  Task
}

// Parse reads the lines of a trace, in their order. It leaves out a line that is not
// complete: a process may have been killed while it wrote the line.
func Parse(text []byte) (all []StageRecord) {
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) != 5 || line[len(line)-1] != '\n' {
			continue
		}
		var numbers [4]uint64
		valid := true
		for i, w := range [...][]byte{words[0], words[2], words[3], words[4]} {
			n, err := strconv.ParseUint(string(w), 10, 63)
			numbers[i], valid = n, valid && err == nil
		}
		if valid {
			all = append(all, StageRecord{int64(numbers[0]), string(words[1]),
				Task{numbers[1], uint32(numbers[2]), uint32(numbers[3])}})
		}
	}
	return all
}
