package steps

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
)

// maxLine is how long a line without an end may get before it is written, in bytes.
const maxLine = 64 << 10

// outputWriter writes what tasks write, whole lines of each, so that they do not mix.
type outputWriter struct {
	mu         sync.Mutex
	out        io.Writer
	labelWidth int  // of a task's number before each line; 0: none
	unbuffered bool // pieces are written as they come
	rest       map[uint32][]byte
}

// write writes what a task has written.
func (w *outputWriter) write(task uint32, data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unbuffered && w.labelWidth == 0 {
		_, _ = w.out.Write(data)
		return
	}
	if w.rest == nil {
		w.rest = map[uint32][]byte{}
	}
	all := append(w.rest[task], data...)
	end := bytes.LastIndexByte(all, '\n') + 1
	if len(all)-end > maxLine {
		end = len(all)
	}
	if end > 0 {
		_, _ = w.out.Write(w.labelled(task, all[:end]))
	}
	w.rest[task] = append([]byte(nil), all[end:]...)
}

// flush writes the last line of a task, which has no end.
func (w *outputWriter) flush(task uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if rest := w.rest[task]; len(rest) > 0 {
		_, _ = w.out.Write(w.labelled(task, rest))
		delete(w.rest, task)
	}
}

// flushAll writes the last lines of all tasks, in the order of their numbers.
func (w *outputWriter) flushAll() {
	for _, task := range slices.Sorted(maps.Keys(w.rest)) {
		w.flush(task)
	}
}

// labelled puts the number of the task before each line.
func (w *outputWriter) labelled(task uint32, data []byte) []byte {
	if w.labelWidth == 0 {
		return data
	}
	number := strconv.Itoa(int(task))
	var b []byte
	for len(data) > 0 {
		line := data
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			line = data[:i+1]
		}
		data = data[len(line):]
		b = append(b, bytes.Repeat([]byte{' '}, max(w.labelWidth-len(number), 0))...)
		b = append(b, number...)
		b = append(append(b, ": "...), line...)
		if len(data) == 0 && line[len(line)-1] != '\n' {
			b = append(b, '\n')
		}
	}
	return b
}
