package startd

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/containerimage"
)

// openContainers opens the container images of the machine, where tasks run in sandboxes
// and the kernel can mount images. The ad says whether it can.
func (m *startdHost) openContainers(ad *classad.Ad) (err error) {
	why, unpack := "tasks run without sandboxes", os.Geteuid() != 0
	switch {
	case m.sandboxed && unpack:
		why = missingUserOverlay()
	case m.sandboxed:
		why = missingFileSystem()
	}
	ad.SetBool(roost.AttrHasContainer, why == "")
	if why != "" {
		m.log.Info("no tasks in container images", "why", why)
		return nil
	}
	m.containers, err = containerimage.Open(containerimage.Options{
		Log: m.log, Dir: m.dirs().Containers(), MaxBytes: int64(m.config.Containers.Max), Unpack: unpack,
		Source: imageSource{m},
	})
	if err != nil {
		return fmt.Errorf("startd %s: %w", m.config.Name, err)
	}
	rack, _ := ad.Str(document.RackAttr)
	m.openUploads(rack)
	return nil
}

// reportContainer tells a schedd how far the container image of an attempt is.
func reportContainer(l *machineLoop, n claim.ContainerEvent) {
	if c, ok := l.table.Find(n.ID); ok && c.ID == n.Claim {
		l.sendTo(c.Schedd, &wire.FromStartd{Of: &wire.FromStartd_Container{Container: n.Progress}})
	}
}

// missingFileSystem says what the kernel lacks for images; empty when it has it. To ask
// for a file system loads its module.
func missingFileSystem() string {
	for _, name := range []string{"erofs", "overlay"} {
		fd, err := unix.Fsopen(name, unix.FSOPEN_CLOEXEC)
		if err != nil {
			return fmt.Sprintf("the kernel has no file system %s: %v", name, err)
		}
		unix.Close(fd)
	}
	return ""
}

// missingUserOverlay says why a user's namespace can have no overlay; empty when it can.
// That is since Linux 5.11.
func missingUserOverlay() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return fmt.Sprintf("the kernel does not say its version: %v", err)
	}
	release := unix.ByteSliceToString(name.Release[:])
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil || major < 5 || major == 5 && minor < 11 {
		return fmt.Sprintf("Linux %s has no overlays for users; 5.11 has", release)
	}
	return ""
}

// releaseImages lets images be removed that no adopted task uses.
func (m *startdHost) releaseImages() {
	if m.containers == nil {
		return
	}
	if err := m.containers.ReleaseUnused(); err != nil {
		m.log.Warn("unused container images stay", "err", err)
	}
}

// closeContainers lets another process have the images.
func (m *startdHost) closeContainers() {
	if m.containers != nil {
		m.containers.Close()
	}
}

// maxAdvertisedImages is how many container images are in a machine's ad.
const maxAdvertisedImages = 256

// describeContainers says in the ad which container images are here, those used last
// first.
func (m *startdHost) describeContainers(ad *classad.Ad) {
	if m.containers == nil {
		return
	}
	list := m.containers.Digests()
	texts := make([]string, 0, min(len(list), maxAdvertisedImages))
	for _, digest := range list[:cap(texts)] {
		texts = append(texts, string(digest))
	}
	ad.SetStrings(roost.AttrContainerImages, texts)
}
