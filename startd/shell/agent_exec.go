package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// Exit statuses of a command that could not be run, as in shells.
const (
	notFound      = 127
	notExecutable = 126
)

// startError is the error of a command that could not be run, with its exit status.
type startError struct {
	code int
	err  error
}

func (f *startError) Error() string { return f.err.Error() }
func (f *startError) Unwrap() error { return f.err }

// ExitCode returns the exit status of the agent for an error of Agent.
func ExitCode(err error) int {
	if f, ok := errors.AsType[*startError](err); ok {
		return f.code
	}
	return roost.Internal.ExitCode()
}

// execCommand executes the command, or the first shell that can be executed.
func (o *agentRequest) execCommand() error {
	command, tries := o.Command, []string{}
	if len(command) > 0 {
		path, err := lookUpCommand(command[0], variableValue(o.Environment, "PATH"))
		if err != nil {
			return err
		}
		tries = append(tries, path)
	} else {
		command, tries = []string{""}, o.Shells
	}
	err := errors.New("there is no shell")
	for _, path := range tries {
		if len(o.Command) == 0 {
			if command[0] = filepath.Base(path); o.Login {
				command[0] = "-" + command[0]
			}
		}
		err = fmt.Errorf("exec %s: %w", path, unix.Exec(path, command, o.Environment))
	}
	return &startError{notExecutable, err}
}

// variableValue returns the value of a variable of the task.
func variableValue(environment []string, name string) string {
	for _, v := range environment {
		if n, value, _ := strings.Cut(v, "="); n == name {
			return value
		}
	}
	return ""
}

// lookUpCommand finds a command as execvp(3) does. It has the user's rights and the
// task's working directory.
func lookUpCommand(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	if path == "" {
		path = "/usr/local/bin:/usr/bin:/bin"
	}
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		file := dir + "/" + name
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
	}
	return "", &startError{notFound, fmt.Errorf("%s: there is no such command in the task's PATH", name)}
}
