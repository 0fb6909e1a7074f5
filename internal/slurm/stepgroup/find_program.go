package stepgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// FindProgram finds a program by the PATH of its environment, as execvp(3) does. A name
// with a slash is relative to the working directory.
func FindProgram(name string, environment []string, dir string) (string, error) {
	if strings.Contains(name, "/") {
		if dir != "" && !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, checkProgram(name)
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, v := range slices.Backward(environment) {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value
			break
		}
	}
	err := error(&os.PathError{Op: "exec", Path: name, Err: syscall.ENOENT})
	for d := range strings.SplitSeq(path, ":") {
		if d == "" {
			d = "."
		}
		if !filepath.IsAbs(d) && dir != "" {
			d = filepath.Join(dir, d)
		}
		file := filepath.Join(d, name)
		found := checkProgram(file)
		if found == nil {
			return file, nil
		}
		if os.IsPermission(found) {
			err = found
		}
	}
	return "", err
}

// checkProgram says why a file cannot be run, as far as its mode shows.
func checkProgram(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case info.IsDir() || info.Mode()&0o111 == 0:
		return &os.PathError{Op: "exec", Path: file, Err: syscall.EACCES}
	}
	return nil
}
