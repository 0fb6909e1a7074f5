package web

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/confine"
)

const (
	// defaultUser is the account of the daemon where the node file names none.
	// etc/systemd/roost.sysusers makes it.
	defaultUser = "roost-web"
	// defaultID is the uid and gid of the daemon on a host without that account. systemd
	// and Debian give 65520 to 65533 to nobody, and most containers have that many ids.
	defaultID = 65533

	mayEnter = 1 // X_OK of access(2)
	openOnly = syscall.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC
)

// daemonAccount is whom a daemon becomes that root has started.
type daemonAccount struct {
	name     string // for messages
	uid, gid int
}

// accountOf returns the account that the node file names, or the default.
func accountOf(w *config.WebSettings) (daemonAccount, error) {
	name := w.User
	if name == "" {
		name = defaultUser
	}
	who, err := account.UserNamed(name)
	if unknown := user.UnknownUserError(""); w.User == "" && errors.As(err, &unknown) {
		return numericAccount()
	}
	if err != nil {
		return daemonAccount{}, fmt.Errorf("web: %w: user %q: %w", roost.BadConfig, name, err)
	}
	uid, uerr := strconv.Atoi(who.Uid)
	gid, gerr := strconv.Atoi(who.Gid)
	if uerr != nil || gerr != nil {
		return daemonAccount{}, fmt.Errorf("web: %w: user %q has uid %q and gid %q", roost.BadConfig, name, who.Uid,
			who.Gid)
	}
	return daemonAccount{fmt.Sprintf("user %s", name), uid, gid}, nil
}

// numericAccount returns an account that is a number only. It is refused where the number
// is somebody's, or where the ids of a container lack it.
func numericAccount() (daemonAccount, error) {
	refuse := func(why string) (daemonAccount, error) {
		return daemonAccount{}, fmt.Errorf("web: %w: root has started it, there is no account %s, and uid %d %s: "+
			"useradd --system --no-create-home %s, or name another account as user in the web block",
			roost.BadConfig, defaultUser, defaultID, why, defaultUser)
	}
	found, err := account.NewDirectory().User(defaultID)
	if err != nil {
		return daemonAccount{}, fmt.Errorf("web: uid %d: %w", defaultID, err)
	}
	if found.IsKnown {
		return refuse("is that of " + found.Name)
	}
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		mapped := func(r account.IDRange) bool { return r.Contains(defaultID) }
		if !slices.ContainsFunc(account.MappedRanges(file), mapped) {
			return refuse("does not exist in this container")
		}
	}
	return daemonAccount{fmt.Sprintf("uid %d", defaultID), defaultID, defaultID}, nil
}

// dropRoot takes on the account of the daemon, if root has started it. The addresses and
// the keys of TLS are open by then.
func dropRoot(n *config.Node) error {
	if os.Geteuid() != 0 {
		return nil
	}
	who, err := accountOf(n.Web)
	if err != nil {
		return err
	}
	if err := giveDirectory(n.WebDir(), who); err != nil {
		return fmt.Errorf("web: %s: %w: %w", n.WebDir(), roost.NoOutput, err)
	}
	for _, addr := range n.Web.Listen {
		if path, ok := strings.CutPrefix(addr, "unix:"); ok { // a reverse proxy is in the account's group
			if err := os.Lchown(path, who.uid, who.gid); err != nil {
				return fmt.Errorf("web: %w: %w", roost.NoOutput, err)
			}
		}
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"groups", func() error { return syscall.Setgroups(nil) }},
		{"gid", func() error { return syscall.Setresgid(who.gid, who.gid, who.gid) }},
		{"uid", func() error { return syscall.Setresuid(who.uid, who.uid, who.uid) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("web: %s of %s: %w: %w", step.what, who.name, roost.PermissionDenied, err)
		}
	}
	return checkReach(n, who)
}

// giveDirectory gives the directory of the daemon and the files in it to an account.
// The former account may still write there, so that only files are given that belonged to
// it or to root and have no second name.
func giveDirectory(path string, to daemonAccount) error {
	dir, err := os.OpenFile(path, syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	var former syscall.Stat_t
	if err := syscall.Fstat(int(dir.Fd()), &former); err != nil {
		return err
	}
	if int(former.Uid) == to.uid && int(former.Gid) == to.gid {
		return nil
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		fd, err := syscall.Openat(int(dir.Fd()), name, openOnly, 0)
		if err != nil {
			continue // a link or a socket: the daemon makes none
		}
		var st syscall.Stat_t
		err = syscall.Fstat(fd, &st)
		isPlain := st.Mode&syscall.S_IFMT == syscall.S_IFREG && st.Nlink == 1
		if err == nil && isPlain && (st.Uid == 0 || st.Uid == former.Uid) {
			err = syscall.Fchown(fd, to.uid, to.gid)
		}
		syscall.Close(fd)
		if err != nil {
			return err
		}
	}
	return dir.Chown(to.uid, to.gid)
}

// checkReach returns an error if the account of the process cannot enter a directory of
// the daemon.
func checkReach(n *config.Node, who daemonAccount) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("own program: %w: %w", roost.NoInput, err)
	}
	for _, dir := range []string{n.WebDir(), n.RunDir(), filepath.Dir(program)} {
		if err := syscall.Access(dir, mayEnter); errors.Is(err, syscall.EACCES) {
			return fmt.Errorf("web: %w: %s cannot enter %s: let others pass the directories above it (chmod o+x), "+
				"or name an account that can as user in the web block", roost.BadConfig, who.name, dir)
		}
	}
	return nil
}

// confine gives up what the daemon does not need, before it serves anybody. It keeps
// sessions of users, so whoever takes it over gets no more than those.
func (d *server) confine() error {
	missing, err := confine.Apply(fileRights(d.node, d.simulator.Program))
	for _, what := range missing {
		d.log.Warn("the kernel lacks " + what)
	}
	return err
}

// fileRights returns the files of the daemon. They are its own directory, the checkpoints
// of the cell, the tokens of readers of metrics, and the programs beside its own.
func fileRights(n *config.Node, program string) confine.Rights {
	r := confine.Rights{Write: []string{n.WebDir()}, Execute: []string{filepath.Dir(program)}}
	if n.Web.Checkpoints != "" {
		r.Read = append(r.Read, n.Web.Checkpoints)
	}
	if n.Metrics != nil && n.Metrics.TokenFile != "" {
		r.Read = append(r.Read, n.Metrics.TokenFile)
	}
	return r
}
