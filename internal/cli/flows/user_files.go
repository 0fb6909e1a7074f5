package flows

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/submit/flowplan"
)

// userFiles opens files with the user's rights, relative to the working directory. Files
// in HCL are translated.
type userFiles struct {
	c     *frame.Invocation
	flows map[string]*flowplan.FlowFile // by name: the files that were translated
}

func newUserFiles(c *frame.Invocation) userFiles {
	return userFiles{c, map[string]*flowplan.FlowFile{}}
}

// Open opens a regular file. Others, such as pipes, cannot be read twice.
func (f userFiles) Open(name string) (io.ReadCloser, error) {
	file, err := os.OpenFile(f.c.AbsolutePath(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errNoRegularFile}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	if filepath.Ext(name) == ".hcl" {
		defer file.Close()
		return f.translate(name, file)
	}
	return file, nil
}

const errNoRegularFile = irregularFileError("it is no regular file")

// irregularFileError is the error for a directory or a pipe.
type irregularFileError string

func (e irregularFileError) Error() string { return string(e) }

// Exists reports whether there is such a file.
func (f userFiles) Exists(name string) bool {
	_, err := os.Stat(f.c.AbsolutePath(name))
	return err == nil
}
