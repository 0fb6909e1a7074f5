package driver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
)

// callTimeout is how long a program of an outer system may take.
const callTimeout = time.Minute

// maxOutput bounds what is read of a program.
const maxOutput = 32 << 20

// endMark is in front of the exit status, which the shell prints last. Without it the
// program may not have run, or not to its end.
const endMark = "roost-exit-status: "

// Shell runs shell programs, with a command line in front.
type Shell struct {
	Via []string
}

// ExitError says that a program ran and failed.
type ExitError struct {
	Program string
	Status  int
	Text    string // what it wrote to its standard error
}

func (e *ExitError) Error() string {
	text := strings.TrimSpace(e.Text)
	if text == "" {
		text = "no message"
	}
	return fmt.Sprintf("%s: exit status %d: %s", e.Program, e.Status, shorten(text))
}

// Run runs the shell lines of program, whose name is for messages, and returns their
// output. The error is an ExitError if the last command failed, and of kind
// roost.Unavailable if nobody knows what happened.
func (s Shell) Run(ctx context.Context, name, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	line := append(append([]string{}, s.Via...), "sh")
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(program + "\nprintf '\\n" + endMark + "%d\\n' $?\n")
	stdout, stderr := &boundedBuffer{}, &boundedBuffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	output, status, ended := cutStatus(stdout.String())
	switch {
	case ended && status == 0:
		return output, nil
	case ended:
		return output, &ExitError{name, status, stderr.String() + output}
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: %w: no answer within %s", name, roost.Unavailable, callTimeout)
	case err == nil:
		err = errors.New("its output ends early")
	}
	text := strings.TrimSpace(stderr.String())
	if text == "" {
		text = err.Error()
	}
	return "", fmt.Errorf("%s: %w: %s: %s", strings.Join(line, " "), roost.Unavailable, name, shorten(text))
}

// cutStatus cuts the exit status off an output.
func cutStatus(text string) (output string, status int, ok bool) {
	i := strings.LastIndex(text, "\n"+endMark)
	if i < 0 {
		return "", 0, false
	}
	status, err := strconv.Atoi(strings.TrimSpace(text[i+1+len(endMark):]))
	return text[:i], status, err == nil
}

// boundedBuffer remembers the beginning of what is written to it.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if room := maxOutput - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// Quote quotes a word for a shell.
func Quote(word string) string {
	if word != "" && !strings.ContainsFunc(word, isSpecial) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// isSpecial reports whether a character may mean something to a shell.
func isSpecial(c rune) bool {
	isWord := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
	return !isWord && !strings.ContainsRune("_-./=:,+@%", c)
}

// QuotePath quotes a path for a shell; a leading ~/ is the home directory there.
func QuotePath(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return `"$HOME"/` + Quote(rest)
	}
	return Quote(path)
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// withInput is a shell line with a standard input of its own.
func withInput(line, input string) string {
	mark := "ROOST_END"
	for strings.Contains(input, mark) {
		mark += "_"
	}
	if !strings.HasSuffix(input, "\n") {
		input += "\n"
	}
	return line + " <<'" + mark + "'\n" + input + mark
}

// WriteFile writes a file that only the user can read, into a directory that only the
// user can enter. It is there as a whole or not at all.
func (s Shell) WriteFile(ctx context.Context, dir, name, text string) error {
	d, n := QuotePath(dir), Quote(name)
	_, err := s.Run(ctx, "write "+dir+"/"+name, "umask 077; mkdir -p "+d+" && chmod 700 "+d+" && cd "+d+" &&\n"+
		withInput("cat > "+n+".new", text)+"\n[ -s "+n+".new ] && mv -f "+n+".new "+n)
	return err
}

// RemoveFiles removes files of a directory.
func (s Shell) RemoveFiles(ctx context.Context, dir string, names ...string) error {
	_, err := s.Run(ctx, "rm", "cd "+QuotePath(dir)+" && rm -f -- "+quoteAll(names))
	return err
}

// RemoveOld removes files of a directory that are older than so many days. Their names
// begin with a pattern of the shell and a dot, and with none of the others.
func (s Shell) RemoveOld(ctx context.Context, dir, pattern string, days int, others []string) error {
	line := "find . -maxdepth 1 -type f -mtime +" + strconv.Itoa(days) + " -name " + Quote(pattern+".*")
	for _, k := range others {
		line += " ! -name " + Quote(k+".*")
	}
	_, err := s.Run(ctx, "find", "cd "+QuotePath(dir)+" && "+line+" -exec rm -f -- {} +")
	return err
}

// ReadNumbers returns the numbers in those files of a directory that are there.
func (s Shell) ReadNumbers(ctx context.Context, dir string, names []string) (map[string]int, error) {
	out, err := s.Run(ctx, "cat", "cd "+QuotePath(dir)+" && for f in "+quoteAll(names)+
		"; do [ ! -s \"$f\" ] || echo \"$f $(cat -- \"$f\")\"; done")
	if err != nil {
		return nil, err
	}
	numbers := map[string]int{}
	for _, line := range strings.Split(out, "\n") {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(text); err == nil && slices.Contains(names, name) {
			numbers[name] = n
		}
	}
	return numbers, nil
}

// ResolveDir creates a directory that only the user can enter, and returns its absolute
// path.
func (s Shell) ResolveDir(ctx context.Context, dir string) (string, error) {
	d := QuotePath(dir)
	out, err := s.Run(ctx, "mkdir "+dir, "umask 077; mkdir -p "+d+" && chmod 700 "+d+" && cd "+d+" && pwd")
	if err != nil {
		return "", err
	}
	if path := lastLine(out); strings.HasPrefix(path, "/") {
		return path, nil
	}
	return "", fmt.Errorf("directory %s: %w: pwd printed %q", dir, roost.Unavailable, shorten(out))
}
