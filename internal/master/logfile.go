package master

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/roost-batch/roost"
)

// maxLog bounds a log file. With the previous file, which is retained, a daemon's logs
// take twice as much.
const maxLog = 16 * roost.MiB

// logFile is a log of bounded size. A full file is renamed to FILE.1, replacing an older
// one, and a new one begins. The last line is remembered, for the message about the
// daemon's death.
type logFile struct {
	path string
	max  int64

	mu       sync.Mutex
	file     *os.File
	size     int64
	partial  []byte // an incomplete line
	lastLine string // the last non-empty line, or the message of a panic
}

const maxLastLine = 512 // bytes of a line that are remembered

func openLog(path string, max int64) (*logFile, error) {
	l := &logFile{path: path, max: max}
	return l, l.open()
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write appends p. If the log cannot be written, lines are lost and nothing else happens:
// a full disk must not stop a pool.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rememberLine(p)
	if l.size > 0 && l.size+int64(len(p)) > l.max {
		l.rotate()
	}
	if l.file != nil {
		n, _ := l.file.Write(p)
		l.size += int64(n)
	}
	return len(p), nil
}

func (l *logFile) rotate() {
	l.file.Close()
	l.file = nil
	if err := os.Rename(l.path, l.path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		// An emptied log is better than an unbounded one.
		_ = os.Truncate(l.path, 0)
	}
	_ = l.open()
}

// rememberLine remembers the last line. The stacks after a panic's message are less
// informative than the message.
func (l *logFile) rememberLine(p []byte) {
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		l.partial = append(l.partial, line[:min(len(line), max(maxLastLine-len(l.partial), 0))]...)
		if !ended {
			return
		}
		if text := bytes.TrimSpace(l.partial); len(text) > 0 && !isPanic(l.lastLine) {
			l.lastLine = string(text)
		}
		l.partial, p = l.partial[:0], rest
	}
}

func isPanic(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// lastWords returns the most informative line about the end of the process, and forgets
// it.
func (l *logFile) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	words := l.lastLine
	if words == "" {
		words = string(bytes.TrimSpace(l.partial))
	}
	l.lastLine, l.partial = "", nil
	return words
}

func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
