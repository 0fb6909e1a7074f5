package criu

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/userfiles"
)

// openAsUser opens a file for appending with a user's rights.
func openAsUser(user userfiles.UserCredential, path string) (f *os.File, err error) {
	err = withUserRights(user, func() (err error) {
		f, err = openStream(path)
		return err
	})
	return f, err
}

// withUserRights calls do with a user's rights over files. These belong to a thread
// (setfsuid(2)), so a thread is used for this call alone and then ends.
func withUserRights(user userfiles.UserCredential, do func() error) (err error) {
	if int(user.UID) == os.Geteuid() {
		return do()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err = assumeUser(user); err == nil {
			err = do()
		}
	}()
	<-done
	return err
}

func openStream(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && info.Mode()&os.ModeCharDevice == 0 {
		err = errors.New("it is no plain file")
	}
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, unix.O_APPEND)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// assumeUser gives this thread a user's rights over files. The raw calls affect one
// thread; package syscall's affect all.
func assumeUser(user userfiles.UserCredential) error {
	var groups *uint32
	if len(user.Groups) > 0 {
		groups = &user.Groups[0]
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(user.Groups)), uintptr(unsafe.Pointer(groups)),
		0); e != 0 {
		return fmt.Errorf("groups: %w", e)
	}
	unix.SetfsgidRetGid(int(user.GID))
	unix.SetfsuidRetUid(int(user.UID))
	if uid, err := unix.SetfsuidRetUid(-1); err != nil || uid != int(user.UID) {
		return errors.New("the user's rights could not be taken")
	}
	return nil
}
