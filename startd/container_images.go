package startd

import (
	"fmt"
	"os"

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
	if m.sandboxed {
		why = containerimage.MissingSupport()
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
	m.earlyFetches = newEarlyFetches(m.log, m.containers)
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
		m.earlyFetches.close()
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
