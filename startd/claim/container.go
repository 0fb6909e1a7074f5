package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/image/imageref"
	"github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// containerRecord is what a restart must know of the container image of an attempt.
type containerRecord struct {
	Digest store.Digest
	Root   proto.RootImage
}

// containerState is what of the machine's images an attempt needs: its container image
// and its packages. The zero value needs none.
type containerState struct {
	wanted  []contentMount // the container image first, if there is one
	awaited bool           // they are on their way, or being mounted
	held    bool           // they are here, and to be released
	driver  string         // directory of the GPU driver for the image; empty: it has none
}

// contentMount is a container image or a package of an attempt.
type contentMount struct {
	Digest    store.Digest
	Reference string // what the user named, for messages
	Target    string // of a package: where the task has it; empty: it is the container image
	Root      string // where the machine has mounted it; empty: not yet
}

// String names it in messages.
func (m contentMount) String() string {
	if m.Target == "" {
		return "container image " + m.Reference
	}
	return "package " + m.Reference
}

// containerizer is the runner of a claim as far as it runs tasks in container images.
type containerizer struct{ *Runner }

func (h *Runner) containerizer() containerizer { return containerizer{h} }

// How long an attempt waits for a server of images that cannot be reached, and how often
// it asks.
const (
	containerRetryTime = 5 * time.Minute
	containerInterval  = 2 * time.Second
)

// prepare checks the container image and the packages that an attempt wants, before they
// are fetched.
func (h containerizer) prepare(a *Attempt) error {
	c := a.program.GetContainer()
	wanted, err := contentOf(a.program)
	switch {
	case err != nil || len(wanted) == 0:
		return err
	case !a.record.Boxed:
		return fmt.Errorf("%w: tasks of %s run without a sandbox, and the %v needs one", roost.Unavailable,
			h.machine.config.Name, wanted[0])
	case h.machine.containers == nil:
		return fmt.Errorf("%w: %s mounts no container images and packages, and the task has the %v", roost.Unavailable,
			h.machine.config.Name, wanted[0])
	}
	a.container.wanted = wanted
	if !c.GetWritable() {
		return nil
	}
	for _, dir := range []string{changesName, changesName + "/changes", changesName + "/work"} {
		if err := a.agent.Mkdir(a.ctx, a.record.Base, dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// contentOf lists the container image and the packages of a program.
func contentOf(p *wire.Program) (list []contentMount, err error) {
	if c := p.GetContainer(); c != nil {
		list = append(list, contentMount{Digest: store.Digest(c.GetDigest()), Reference: c.GetReference()})
	}
	var mounts []imageref.PackageMount
	for _, w := range p.GetPackages() {
		target, err := imageref.CheckPackageTarget(w.GetTarget())
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errJobFault, err)
		}
		mounts = append(mounts, imageref.PackageMount{Reference: w.GetReference(), Target: target})
		list = append(list, contentMount{Digest: store.Digest(w.GetDigest()), Reference: w.GetReference(),
			Target: target})
	}
	if err := imageref.CheckPackageTargets(mounts); err != nil {
		return nil, fmt.Errorf("%w: %w", errJobFault, err)
	}
	if len(mounts) > proto.MaxPackages {
		return nil, fmt.Errorf("%w: it has %d packages, and %d is the most", errJobFault, len(mounts),
			proto.MaxPackages)
	}
	for _, m := range list {
		if _, err := store.ParseDigest(string(m.Digest)); err != nil {
			return nil, fmt.Errorf("%w: %v: %w", errJobFault, m, err)
		}
	}
	return list, nil
}

// changesName is the directory, among the attempt's own files, of what it changes in its
// container.
const changesName = ".container"

// begin fetches and mounts the image and the packages of an attempt beside the runner.
// That hears of it by containerReady. Only there anything of the user's is looked at: a
// file server may not answer.
func (h containerizer) begin(a *Attempt) {
	if len(a.container.wanted) == 0 || a.AcquireFiles() != nil {
		return
	}
	a.container.awaited = true
	program, record := a.program, a.record
	mounted := slices.Clone(a.container.wanted)
	wantsDriver := program.GetContainer() != nil && len(h.file.gpuShares()) > 0
	go func() {
		defer a.ReleaseFiles()
		n := containerReady{id: a.id}
		for i := range mounted {
			m := &mounted[i]
			p := newContainerProgress(h, a, *m)
			m.Root, n.err = h.acquire(a, m.Digest, p)
			p.end()
			if n.err != nil {
				n.failed = *m
				break
			}
			n.mounts = mounted[:i+1]
		}
		if program.GetContainer() != nil && n.err == nil {
			n.failed = mounted[0]
			n.image, n.err = h.rootImage(program, &record, mounted[0].Root)
		}
		if wantsDriver && n.err == nil {
			var err error
			if n.driver, err = h.machine.gpuDriver.Dir(); err != nil {
				h.machine.log.Warn("a task in an image has GPUs and no driver", "attempt", a.Label(), "err", err)
			}
		}
		if n.err != nil {
			h.releaseAll(n.mounts)
		}
		h.queue.Put(n)
	}()
}

// releaseAll gives images and packages back.
func (h containerizer) releaseAll(list []contentMount) {
	for _, m := range list {
		h.machine.containers.Release(m.Digest)
	}
}

// acquire gets an image or a package, and asks again for a while when nobody answers who
// has it.
func (h containerizer) acquire(a *Attempt, digest store.Digest, p *containerProgress) (root string, err error) {
	ctx, cancel := context.WithTimeout(a.ctx, containerRetryTime)
	defer cancel()
	for {
		root, err = h.machine.containers.Acquire(ctx, digest)
		if err == nil || !errors.Is(err, roost.Unavailable) || ctx.Err() != nil {
			return root, err
		}
		h.machine.log.Info("an image or package cannot be fetched now", "attempt", a.Label(), "err", err)
		p.setWaits(err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(containerInterval):
		}
	}
}

// onReady lets the attempt begin, if nothing else is awaited, or ends it.
func (h containerizer) onReady(n containerReady) {
	if !h.hasOpenAttempt(n.id) || !h.attempt.AwaitsInput() {
		if n.err == nil {
			h.releaseAll(n.mounts)
		}
		return
	}
	a := h.attempt
	a.container.awaited = false
	switch {
	case n.err == nil:
		a.container.held, a.container.wanted, a.container.driver = true, n.mounts, n.driver
		a.record.setContent(n)
		if dir := a.program.GetContainer().GetWorkdir(); dir != "" && a.record.Scratch == "" {
			a.record.Cwd = dir
		}
		if a.checkpoint.otherwiseReady && !a.checkpoint.awaitsImage {
			h.startPrepared(a)
		}
	case errors.Is(n.err, roost.Unavailable) || errors.Is(n.err, roost.Exhausted) ||
		errors.Is(n.err, context.DeadlineExceeded):
		h.machine.log.Warn("no "+n.failed.String(), "attempt", a.Label(), "err", n.err)
		h.onExit(a, &wire.ExitStatus{Cause: wire.Cause_CAUSE_VACATED,
			Reason: fmt.Sprintf("its %v could not be fetched: %v", n.failed, n.err)})
	case errors.Is(n.err, errJobFault):
		h.failAttempt(a, fmt.Errorf("%v: %w", n.failed, n.err))
	case errors.Is(n.err, roost.NotFound) || errors.Is(n.err, roost.Invalid):
		h.failAttempt(a, fmt.Errorf("%w: %v: %w", errJobFault, n.failed, n.err))
	default:
		h.failAttempt(a, fmt.Errorf("%v: %w", n.failed, n.err))
	}
}

// setContent notes what a restart must know of the image and the packages.
func (r *attemptRecord) setContent(n containerReady) {
	for _, m := range n.mounts {
		if m.Target == "" {
			r.Container = &containerRecord{m.Digest, n.image}
		} else {
			r.Packages = append(r.Packages, m)
		}
	}
}

// release gives back what an attempt has of the machine's images.
func (h containerizer) release(a *Attempt) {
	if a.container.held {
		a.container.held = false
		h.releaseAll(a.container.wanted)
	}
}

// adopt counts an attempt of an earlier process as a user of its image and packages.
func (h containerizer) adopt(a *Attempt) {
	if h.machine.containers == nil {
		return
	}
	var list []contentMount
	if c := a.record.Container; c != nil {
		list = append(list, contentMount{Digest: c.Digest})
	}
	list = append(list, a.record.Packages...)
	a.container = containerState{wanted: list, held: len(list) > 0}
	for _, m := range list {
		h.machine.containers.Adopt(m.Digest)
	}
}

// ownMountNamespace returns the path of the mount namespace that has the images. Nested
// sandboxes have no mounts of images, but directories.
func ownMountNamespace() string {
	if makesNestedSandboxes() {
		return ""
	}
	return fmt.Sprintf("/proc/%d/ns/mnt", os.Getpid())
}

// rootImage describes the root of a task in an image. It has accounts and host names of
// the machine, and the directories that the job wants and the machine's owner allows.
func (h containerizer) rootImage(p *wire.Program, r *attemptRecord, root string) (proto.RootImage, error) {
	image := proto.RootImage{Root: root, Namespace: ownMountNamespace()}
	if p.GetContainer().GetWritable() {
		image.Writable = filepath.Join(r.Base, changesName)
	}
	user, _ := h.machine.accounts.directory.User(h.cred.UID)
	group, _ := h.machine.accounts.directory.Group(h.cred.GID)
	if h.isSlotUser() {
		user.Home = ""
	}
	name := cmp.Or(user.Name, fmt.Sprintf("u%d", h.cred.UID))
	image.Files = []proto.ImageFile{
		{Path: "/etc/passwd", Text: fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\n", name, h.cred.UID, h.cred.GID,
			cmp.Or(user.Home, "/"))},
		{Path: "/etc/group", Text: fmt.Sprintf("%s:x:%d:\n", cmp.Or(group.Name, name), h.cred.GID)},
	}
	for _, path := range []string{"/etc/resolv.conf", "/etc/hosts"} {
		if text, err := os.ReadFile(path); err == nil && len(text) <= maxHostFile {
			image.Files = append(image.Files, proto.ImageFile{Path: path, Text: string(text), Replace: true})
		}
	}
	wanted := containerDirs{settings: h.machine.config.Containers, node: h.machine.config.Name}
	wanted.allow(user.Home, !r.OwnTemp)
	for _, m := range p.GetContainer().GetMounts() {
		if err := wanted.add(m.GetSource(), cmp.Or(m.GetTarget(), m.GetSource()), m.GetReadOnly()); err != nil {
			return image, err
		}
	}
	if r.Scratch == "" && p.GetContainer().GetWorkdir() == "" {
		if err := wanted.add(p.GetCwd(), p.GetCwd(), false); err != nil {
			return image, fmt.Errorf("the working directory: %w", err)
		}
	}
	image.Mounts = wanted.list()
	return image, nil
}

// containerEnvironment adds what a container image says to the environment of a program,
// which goes before it. But qsub sends the PATH of the submit node, which is none of the
// image's.
func containerEnvironment(p *wire.Program, given []string) []string {
	for _, text := range p.GetContainer().GetEnvironment() {
		v := string(text)
		if strings.HasPrefix(v, "PATH=") && isQsubJob(p) {
			given = slices.DeleteFunc(given, func(g string) bool { return strings.HasPrefix(g, "PATH=") })
		}
		if !setsVariable(given, v) {
			given = append(given, v)
		}
	}
	return given
}

// withSearchPaths adds directories to lists of directories in an environment. They come
// after all others, unless the lists have them.
func withSearchPaths(given []string, dirs map[string]string) []string {
	for name, dir := range dirs {
		at := slices.IndexFunc(given, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		switch {
		case at < 0 && name != "PATH": // the default of that is the program's
			given = append(given, name+"="+dir)
		case at >= 0 && !slices.Contains(strings.Split(given[at][len(name)+1:], ":"), dir):
			given[at] += ":" + dir
		}
	}
	return given
}

// maxHostFile is the most bytes of a file of the machine that containers have a copy of.
const maxHostFile = 256 << 10

// containerDirs are the directories of the machine that a container has.
type containerDirs struct {
	settings config.ContainerSettings
	node     string
	hostTemp bool               // it has the machine's /tmp
	allowed  []proto.ImageMount // with Base and ReadOnly
	mounts   []proto.ImageMount
}

// allow notes which directories a container may have. The home directory, and /tmp if the
// job works there, it has without being asked.
func (d *containerDirs) allow(home string, hostTemp bool) {
	for _, text := range d.settings.Mounts {
		path, readOnly := config.SplitContainerMount(text)
		d.allowed = append(d.allowed, proto.ImageMount{Base: path, ReadOnly: readOnly})
	}
	if home != "" && home != "/" && !d.settings.NoHome && exists(home) {
		d.allowed = append(d.allowed, proto.ImageMount{Base: home})
		d.mounts = append(d.mounts, proto.ImageMount{Base: home, Inside: home})
	}
	if d.hostTemp = hostTemp; hostTemp {
		d.allowed = append(d.allowed, proto.ImageMount{Base: proto.SandboxTempDir})
		d.mounts = append(d.mounts, proto.ImageMount{Base: proto.SandboxTempDir, Inside: proto.SandboxTempDir})
	}
}

// exists reports whether a directory is there, or cannot be seen. A file server may hide
// it from root.
func exists(dir string) bool {
	_, err := os.Stat(dir)
	return !errors.Is(err, fs.ErrNotExist)
}

// isFile reports whether a path is that of a file. What root cannot see, because a file
// server hides it, counts as a directory.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// reservedInside is what a container has of its own. The last of them it has unless its
// job works in the machine's.
var reservedInside = []string{"/dev", "/proc", "/sys", proto.SandboxSecretsDir, proto.SandboxTempDir}

// add has a container have a directory of the machine.
func (d *containerDirs) add(source, target string, readOnly bool) error {
	for _, path := range []string{source, target} {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
			return fmt.Errorf("%w: %q is no absolute path of a directory below /", errJobFault, path)
		}
	}
	for _, own := range reservedInside {
		if _, ok := relativeTo(own, target); ok && (own != proto.SandboxTempDir || !d.hostTemp) {
			return fmt.Errorf("%w: nothing can be mounted on %s, which each container has of its own", errJobFault,
				target)
		}
	}
	for _, m := range d.mounts { // it is there already
		rest, ok := relativeTo(m.Base, source)
		if ok && m.Path == "" && m.Inside+rest == target && m.ReadOnly == readOnly {
			return nil
		}
	}
	for _, a := range d.allowed {
		if rest, ok := relativeTo(a.Base, source); ok {
			d.mounts = append(d.mounts, proto.ImageMount{Base: a.Base, Path: strings.TrimPrefix(rest, "/"),
				Inside: target, ReadOnly: a.ReadOnly || readOnly, File: isFile(source)})
			return nil
		}
	}
	return fmt.Errorf("%w: %s does not let containers have %s: its owner allows it with mounts in the containers "+
		"block of its node file; or have the files sent (transfer)", errJobFault, d.node, source)
}

// list returns the directories, those above others first.
func (d *containerDirs) list() []proto.ImageMount {
	slices.SortStableFunc(d.mounts, func(a, b proto.ImageMount) int { return cmp.Compare(a.Inside, b.Inside) })
	return d.mounts
}
