package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// openCaptured creates the files for captured streams, in a directory where only the
// starter can write. It gives them to the user, who may then open them again as
// /dev/stdout.
func openCaptured(o *proto.StartCmd, files *[3]int) startError {
	syscall.Umask(0)
	paths := [3]string{1: o.Stdout, 2: o.Stderr}
	for i, step := range [3]proto.StartStep{1: proto.OpenStdout, 2: proto.OpenStderr} {
		if paths[i] != proto.Captured || i == 2 && o.Join {
			continue
		}
		path, empty := o.IO+"/"+proto.CapturedFile(i == 2), syscall.O_TRUNC
		if o.Append {
			empty = 0
		}
		fd, err := syscall.Open(path,
			empty|syscall.O_WRONLY|syscall.O_CREAT|syscall.O_APPEND|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
		if err == nil {
			files[i] = fd
			if o.UID != uint32(syscall.Geteuid()) {
				err = syscall.Fchown(fd, int(o.UID), int(o.GID))
			}
		}
		if err != nil {
			return startError{step, errno(err), path}
		}
	}
	return startError{}
}

// prepareFiles opens the files that the user names and finds the program. It uses the
// rights of the calling thread.
func prepareFiles(o *proto.StartCmd, files *[3]int) (program string, why startError) {
	if why = checkEnterable(o.Cwd); why.step != proto.StepNone {
		return "", why
	}
	flags := syscall.O_WRONLY | syscall.O_CREAT | syscall.O_NOCTTY | syscall.O_APPEND // others append to it, too: qmsg
	if !o.Append {
		flags |= syscall.O_TRUNC
	}
	for i, want := range [3]struct {
		path  string
		flags int
		step  proto.StartStep
	}{{o.Stdin, syscall.O_RDONLY | syscall.O_NOCTTY, proto.OpenStdin}, {o.Stdout, flags, proto.OpenStdout},
		{o.Stderr, flags, proto.OpenStderr}} {
		if files[i] > 0 || i == 2 && o.Join {
			continue
		}
		path := below(o.Cwd, want.path)
		switch want.path {
		case "":
			path, want.flags = "/dev/null", syscall.O_RDWR
		case proto.Captured: // in a sandbox; outside the file is open already
			path, want.flags = proto.SandboxIODir+"/"+proto.CapturedFile(i == 2),
				syscall.O_WRONLY|syscall.O_APPEND|syscall.O_NOFOLLOW
		}
		fd, err := openNonblocking(path, want.flags)
		if err != 0 {
			return "", startError{want.step, err, path}
		}
		files[i] = fd
	}
	return findProgram(o)
}

// openNonblocking opens a file without blocking. It returns an error for a FIFO without a
// process at its other end.
func openNonblocking(path string, flags int) (int, syscall.Errno) {
	for {
		fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0o666)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return 0, errno(err)
		}
		return fd, errno(syscall.SetNonblock(fd, false))
	}
}

func checkEnterable(cwd string) startError {
	fd, err := syscall.Open(cwd, unix.O_PATH|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err == nil {
		syscall.Close(fd)
		err = unix.Faccessat(unix.AT_FDCWD, cwd, unix.X_OK, unix.AT_EACCESS)
	}
	if err != nil {
		return startError{proto.EnterCwd, errno(err), cwd}
	}
	return startError{}
}

func below(cwd, path string) string {
	if path == "" || path[0] == '/' {
		return path
	}
	return cwd + "/" + path
}

// findProgram searches PATH for a program without a slash in its name, as execvp(3) does.
func findProgram(o *proto.StartCmd) (string, startError) {
	if o.Executable == "" {
		return "", startError{proto.FindProgram, syscall.ENOENT, "the empty name"}
	}
	for i := range len(o.Executable) {
		if o.Executable[i] == '/' {
			return o.Executable, startError{}
		}
	}
	why := syscall.ENOENT
	list := pathVariable(o.Environment)
	for start, i := 0, 0; i <= len(list); i++ {
		if i < len(list) && list[i] != ':' {
			continue
		}
		dir := list[start:i]
		start = i + 1
		if dir == "" {
			dir = "."
		}
		candidate := dir + "/" + o.Executable
		switch err := errno(unix.Faccessat(unix.AT_FDCWD, below(o.Cwd, candidate), unix.X_OK, unix.AT_EACCESS)); {
		case err == 0 && regular(below(o.Cwd, candidate)):
			return candidate, startError{}
		case err == syscall.EACCES:
			why = err
		}
	}
	return "", startError{proto.FindProgram, why, o.Executable}
}

func regular(path string) bool {
	var st syscall.Stat_t
	return syscall.Stat(path, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG
}

func pathVariable(environment []string) string {
	for _, v := range environment {
		if len(v) > 5 && v[:5] == "PATH=" {
			return v[5:]
		}
	}
	return "/usr/local/bin:/usr/bin:/bin"
}
