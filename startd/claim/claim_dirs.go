package claim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/startd/slot"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// claimDirs are the directories of a claim's attempts, which use them one after the
// other. The claim's runner owns them.
type claimDirs struct {
	dirs   Dirs
	id     slot.ClaimID
	cred   userfiles.UserCredential // whose they are
	agents *userfiles.AgentPool
	log    *slog.Logger

	agent  *userfiles.Agent // the claim's share in the agent of its user; nil: it was not needed yet
	base   string           // for the files of attempts, which the user owns; empty: it is not made yet
	ioMade bool             // that for their streams is made
}

// userAgent is the claim's share in the agent of its user.
func (d *claimDirs) userAgent() (*userfiles.Agent, error) {
	if d.agent != nil {
		return d.agent, nil
	}
	agent, err := d.agents.Acquire(d.cred)
	if err == nil {
		d.agent = agent
	}
	return agent, err
}

// makeBase returns the directory for the attempts' own files, and makes it if it is not
// there.
func (d *claimDirs) makeBase() (string, error) {
	if d.base == "" {
		base, err := userfiles.MakeScratch(d.dirs.Scratch(), d.id.String(), d.cred)
		if err != nil {
			return "", err
		}
		d.base = base
	}
	return d.base, nil
}

// prepareIO makes the claim's directory for streams and script. Its attempts use it one
// after the other: a file system looks long for a place for new files where it has just
// given some back (ext4 keeps away from those for five seconds), and short tasks would
// do little else.
func (d *claimDirs) prepareIO(path string) error {
	if d.ioMade {
		return nil
	}
	err := os.Mkdir(path, 0o711)
	d.ioMade = err == nil
	return err
}

// writeFile writes what the user's program is to read where nobody but us can write. The
// file belongs to the user, who alone can read it.
func (d *claimDirs) writeFile(path, text string, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil && int(d.cred.UID) != os.Geteuid() {
		err = f.Chown(int(d.cred.UID), int(d.cred.GID))
	}
	return errors.Join(err, f.Close())
}

// prepareTerminal makes the pipe. Only the job's user can read it, and only we write to
// it. Root can in any case; a startd that runs without root runs only its own user's
// jobs, and needs the right.
func (d *claimDirs) prepareTerminal(path string) error {
	own := int(d.cred.UID) == os.Geteuid()
	mode := uint32(0o400)
	if own {
		mode = 0o600
	}
	if err := unix.Mkfifo(path, mode); err != nil {
		return fmt.Errorf("pipe of the terminal: %w", err)
	}
	if own {
		return nil
	}
	return os.Lchown(path, int(d.cred.UID), int(d.cred.GID))
}

// emptyBase removes what an attempt left in its directory, with its user's rights. Most
// short tasks leave nothing there, and the agent need not be asked.
func (d *claimDirs) emptyBase() error {
	if d.base == "" || isEmptyDir(d.base) {
		return nil
	}
	agent, err := d.userAgent()
	if err == nil {
		err = agent.RemoveAll(context.Background(), d.base, ".")
	}
	return err
}

// isEmptyDir reports whether a directory can be read and has no entries. It follows no
// symbolic link in the place of the directory.
func isEmptyDir(path string) bool {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	entries := make([]byte, 1024)
	for {
		n, err := unix.ReadDirent(fd, entries)
		if err != nil || n <= 0 {
			return err == nil
		}
		if _, names, _ := unix.ParseDirent(entries[:n], 1, nil); names > 0 { // "." and ".." are left out
			return false
		}
	}
}

// emptyIO makes the directory for streams ready for the next attempt. Nobody but us makes
// files there.
func (d *claimDirs) emptyIO() error {
	if !d.ioMade {
		return nil
	}
	dir := filepath.Join(d.dirs.IO(), d.id.String())
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); !reuseFile(path, e) {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// reuseFile makes a file ready to be used again, and reports whether it is. Whoever
// follows the next attempt's output must not be shown this one's. A file that is empty is
// left alone, because each change of an inode is written to disk; one that takes long to
// empty is not used again.
func reuseFile(path string, e fs.DirEntry) bool {
	switch e.Name() {
	case proto.CapturedFile(false), proto.CapturedFile(true):
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxInlineOutput {
			return false
		}
		return info.Size() == 0 || os.Truncate(path, 0) == nil
	}
	return false
}

// remove removes the directories of the claim's attempts.
func (d *claimDirs) remove() {
	var errs []error
	if d.base != "" {
		errs = append(errs, removeScratch(d.base, d.userAgent))
	}
	if d.ioMade {
		errs = append(errs, os.RemoveAll(filepath.Join(d.dirs.IO(), d.id.String())))
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.log.Warn("cannot clean up", "claim", d.id, "err", err)
		}
	}
}

// find finds the directories that an earlier start has made.
func (d *claimDirs) find() {
	base := filepath.Join(d.dirs.Scratch(), d.id.String())
	if _, err := os.Lstat(base); err == nil {
		d.base = base
	}
	_, err := os.Lstat(filepath.Join(d.dirs.IO(), d.id.String()))
	d.ioMade = err == nil
}

// close gives the user's agent back.
func (d *claimDirs) close() {
	if d.agent != nil {
		d.agents.Release(d.cred)
	}
}

// removeScratch empties a scratch directory with its user's rights, and removes it with
// ours.
func removeScratch(path string, agent func() (*userfiles.Agent, error)) error {
	a, err := agent()
	if err != nil {
		return err
	}
	if err := a.RemoveAll(context.Background(), path, "."); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Remove(path)
}
