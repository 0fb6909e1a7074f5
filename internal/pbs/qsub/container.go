package qsub

import (
	"cmp"
	"errors"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/image/imageref"
)

// The names by which PBS Professional has jobs run in containers (User's Guide, "Using
// Containers"): an engine as a resource, and the image in the environment. Roost has its
// own engine, and takes the image as a resource, too.
const (
	imageResource  = "image"
	engineResource = "container_engine"
	portsResource  = "container_ports"
	imageVariable  = "CONTAINER_IMAGE"
	argsVariable   = "PBS_CONTAINER_ARGS"
)

// hasContainer reports whether the job asks for a container image.
func hasContainer(s *JobSubmission) bool {
	_, exported := s.export[imageVariable]
	return exported || wantsEngine(s) || s.ResourceValues[imageResource] != ""
}

// wantsEngine reports whether the job asks for an engine, as a whole or in its chunks.
func wantsEngine(s *JobSubmission) bool {
	return s.ResourceValues[engineResource] != "" ||
		strings.Contains(s.ResourceValues["select"], ":"+engineResource+"=")
}

// setContainer sets the container image of the job.
func setContainer(s *JobSubmission, ad *classad.Ad) error {
	if !hasContainer(s) {
		return nil
	}
	text := cmp.Or(s.ResourceValues[imageResource], s.export[imageVariable])
	if text == "" && s.exportAll {
		text, _ = LookUpVariable(s.Caller.Environ, imageVariable)
	}
	if text == "" {
		return illegalResourceError(engineResource, "which image? Name it with -l image=IMAGE or -v "+imageVariable+
			"=IMAGE")
	}
	r, err := containerImage(text)
	if err != nil {
		return illegalResourceError(imageResource, err.Error())
	}
	if r.Path != "" {
		r.Path = s.paths().absolutePath(r.Path)
	}
	ad.SetString(roost.AttrContainerImage, r.WithPath(r.Path))
	if s.export[argsVariable] != "" {
		s.warnings = append(s.warnings, "qsub: "+argsVariable+
			" has no effect: Roost runs containers without an engine")
	}
	if s.ResourceValues[portsResource] != "" {
		s.warnings = append(s.warnings, "qsub: "+portsResource+
			" has no effect: a container has the network of its machine")
	}
	return nil
}

// containerImage reads the name of an image. As docker does, it takes one without a
// scheme for an image of a registry.
func containerImage(text string) (imageref.Reference, error) {
	r, err := imageref.Parse(text)
	if err == nil {
		return r, nil
	}
	if r, plain := imageref.Parse("docker://" + text); plain == nil {
		return r, nil
	}
	why := err.Error()
	if at := strings.LastIndex(why, roost.Invalid.Error()+": "); at >= 0 {
		why = why[at+len(roost.Invalid.Error())+2:]
	}
	return r, errors.New(why)
}
