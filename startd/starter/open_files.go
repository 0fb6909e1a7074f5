package starter

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// openCaptured makes the files for what is captured, in a directory where nobody else can
// write. They are given to the user, who may then open them once more as /dev/stdout.
func openCaptured(o *proto.StartCmd, files *[3]int) startError {
	syscall.Umask(0)
	paths := [3]string{1: o.Stdout, 2: o.Stderr}
	for i, step := range [3]proto.StartStep{1: proto.OpenStdout, 2: proto.OpenStderr} {
		if paths[i] != proto.Captured || i == 2 && o.Join {
			continue
		}
		path := o.IO + "/" + proto.CapturedFile(i == 2)
		fd, err := syscall.Open(path,
			syscall.O_WRONLY|syscall.O_CREAT|syscall.O_APPEND|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
		if err == nil {
			files[i] = fd
			err = resetCaptured(fd, o)
		}
		if err != nil {
			return startError{step, errno(err), path}
		}
	}
	return startError{}
}

// resetCaptured empties a captured file, unless the task appends to it, and gives it to
// the task's user. A file that is so already is left alone: each change of an inode is
// written to disk, and short tasks use the same files one after the other.
func resetCaptured(fd int, o *proto.StartCmd) error {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Size > 0 && !o.Append {
		if err := syscall.Ftruncate(fd, 0); err != nil {
			return err
		}
	}
	if o.UID == uint32(syscall.Geteuid()) || st.Uid == o.UID && st.Gid == o.GID {
		return nil
	}
	return syscall.Fchown(fd, int(o.UID), int(o.GID))
}

// prepareFiles opens what the user names and finds the program, with the rights of the
// calling thread.
func prepareFiles(o *proto.StartCmd, files *[3]int) (program string, why startError) {
	if why = checkEnterable(o.Cwd); why.step != proto.StepNone {
		return "", why
	}
	for i, stream := range taskStreams(o) {
		if files[i] > 0 || stream.path == "" {
			continue
		}
		fd, err := openNonblocking(stream.path, stream.flags)
		if err != 0 {
			return "", startError{stream.step, err, stream.path}
		}
		files[i] = fd
	}
	return findProgram(o)
}

// taskStream is one of a task's three first files, as it is opened with the user's
// rights. One without a path is not opened.
type taskStream struct {
	path  string
	flags int
	step  proto.StartStep
}

func taskStreams(o *proto.StartCmd) (streams [3]taskStream) {
	flags := syscall.O_WRONLY | syscall.O_CREAT | syscall.O_NOCTTY | syscall.O_APPEND // others add to it, too: qmsg
	if !o.Append && !o.AppendFiles {
		flags |= syscall.O_TRUNC
	}
	streams = [3]taskStream{{o.Stdin, syscall.O_RDONLY | syscall.O_NOCTTY, proto.OpenStdin},
		{o.Stdout, flags, proto.OpenStdout}, {o.Stderr, flags, proto.OpenStderr}}
	for i := range streams {
		stream := &streams[i]
		switch stream.path {
		case "":
			stream.path, stream.flags = "/dev/null", syscall.O_RDWR
		case proto.Captured: // in a sandbox; outside the file is open already
			stream.path, stream.flags = proto.SandboxIODir+"/"+proto.CapturedFile(i == 2),
				syscall.O_WRONLY|syscall.O_APPEND|syscall.O_NOFOLLOW
		default:
			stream.path = below(o.Cwd, stream.path)
		}
	}
	if o.Join {
		streams[2].path = ""
	}
	return streams
}

// openNonblocking opens a file. A fifo without anybody at its other end is an error, as
// nobody can wait here.
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

// findProgram looks for a program without a slash in its name along PATH, as execvp(3)
// does.
func findProgram(o *proto.StartCmd) (string, startError) {
	if hasSlash(o.Executable) {
		return o.Executable, startError{}
	}
	candidates := programCandidates(o)
	if len(candidates) > maxCandidates {
		return "", startError{proto.FindProgram, syscall.E2BIG, programName(o)}
	}
	why := syscall.ENOENT
	for _, candidate := range candidates {
		switch err := errno(unix.Faccessat(unix.AT_FDCWD, below(o.Cwd, candidate), unix.X_OK, unix.AT_EACCESS)); {
		case err == 0 && regular(below(o.Cwd, candidate)):
			return candidate, startError{}
		case err == syscall.EACCES:
			why = err
		}
	}
	return "", startError{proto.FindProgram, why, programName(o)}
}

// programName is the program in a sentence about it.
func programName(o *proto.StartCmd) string {
	if o.Executable == "" {
		return "the empty name"
	}
	return o.Executable
}

func hasSlash(name string) bool {
	for i := range len(name) {
		if name[i] == '/' {
			return true
		}
	}
	return false
}

// maxCandidates bounds the directories of a PATH.
const maxCandidates = 1000

// programCandidates are the paths that a program without a slash in its name may have. If
// they are more than maxCandidates, the rest is left out. One that no path may be as long
// as is none.
func programCandidates(o *proto.StartCmd) (paths []string) {
	if o.Executable == "" {
		return nil
	}
	list := pathVariable(o.Environment)
	for start, i := 0, 0; i <= len(list) && len(paths) <= maxCandidates; i++ {
		if i < len(list) && list[i] != ':' {
			continue
		}
		dir := list[start:i]
		start = i + 1
		if dir == "" {
			dir = "."
		}
		if len(dir)+1+len(o.Executable) < unix.PathMax {
			paths = append(paths, dir+"/"+o.Executable)
		}
	}
	return paths
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
