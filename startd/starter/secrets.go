package starter

import (
	"syscall"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// taskSecrets are the secrets of a task, as files of a file system in memory. The starter
// mounts it in its own mount namespace, and the sandbox has it at
// proto.SandboxSecretsDir. It is not swapped, no other process of the machine sees it,
// and it is gone with the starter. For a checkpoint it is a mount from outside, so its
// contents are in no image. The zero value has none.
type taskSecrets struct {
	dir     string // where they are mounted, below the claim's directory
	mounted bool
}

// stagedSecrets is the name of that directory.
const stagedSecrets = "/secrets"

// prepareSecrets mounts the secrets of a task that is about to start, and removes those
// of the one before. Whoever has a copy of the starter's mounts ends.
func prepareSecrets(s *starterProcess, o *proto.StartCmd) startError {
	releaseSecrets(s)
	if len(o.Secrets) == 0 {
		return startError{}
	}
	s.stopServer()
	s.secrets.dir = s.dir + stagedSecrets
	return s.secrets.mount(o)
}

// releaseSecrets removes the secrets of a task that has ended.
func releaseSecrets(s *starterProcess) {
	if s.secrets.mounted {
		syscall.Unmount(s.secrets.dir, syscall.MNT_DETACH) // a sandbox that is ending keeps its own
		s.stopServer()
		s.secrets.mounted = false
	}
}

// replaceSecrets gives a running task the new versions of its secrets, and then sends its
// program the signals.
func replaceSecrets(s *starterProcess, o *proto.StartCmd, signals []uint32) {
	if !s.secrets.mounted {
		return
	}
	o.UID, o.GID = s.startCmd.UID, s.startCmd.GID
	if why := s.secrets.write(o); why.step != proto.StepNone {
		logError("secrets: "+why.path, why.errno)
		return
	}
	for _, n := range signals {
		s.signalTask(syscall.Signal(n), false)
	}
}

func (m *taskSecrets) mount(o *proto.StartCmd) startError {
	for _, path := range [...]string{m.dir, proto.SandboxSecretsDir} { // the sandbox mounts it on the latter
		if err := syscall.Mkdir(path, 0o755); err != nil && err != syscall.EEXIST {
			return startError{proto.MakeSandbox, errno(err), path}
		}
	}
	const flags = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC
	err := syscall.Mount("tmpfs", m.dir, "tmpfs", flags, "mode=755,size=4m,noswap")
	if err == syscall.EINVAL { // a kernel before 6.4; what is in a ramfs is never swapped
		err = syscall.Mount("ramfs", m.dir, "ramfs", flags, "mode=755")
	}
	if err != nil {
		return startError{proto.MakeSandbox, errno(err), "mount on " + m.dir}
	}
	m.mounted, o.SecretsDir = true, m.dir
	return m.write(o)
}

// write writes each secret that has a text into its file, in one step, and forgets the
// texts.
func (m *taskSecrets) write(o *proto.StartCmd) (why startError) {
	syscall.Umask(0)
	for _, f := range o.Secrets {
		if len(f.Text) == 0 {
			continue // the task has that version
		}
		path, made := m.dir+"/"+f.Name, m.dir+"/.new" // no name of a secret begins with a dot
		err := writeSecret(made, f.Text, o)
		if err == nil {
			err = syscall.Rename(made, path)
		}
		clear(f.Text)
		if err != nil && why.step == proto.StepNone {
			why = startError{proto.MakeSandbox, errno(err), path}
		}
	}
	o.Secrets = nil
	return why
}

// writeSecret writes a new file that only the task's user can read.
func writeSecret(path string, text []byte, o *proto.StartCmd) error {
	syscall.Unlink(path)
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o400)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if e := writeAt(fd, text, 0); e != 0 {
		return e
	}
	return syscall.Fchown(fd, int(o.UID), int(o.GID))
}
