package submit

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/image/imageref"
)

const (
	imageHint = "It is the container image in which the tasks run: image = \"docker://python:3.12\", " +
		"\"oci:DIRECTORY:TAG\", \"docker-archive:FILE\", \"FILE.sif\" or \"NAME@LABEL\"."
	workdirHint = "It is where the program starts in the image: image_workdir = \"/work\"."
	maxMounts   = 64
)

// containerReader reads the container image of a job.
type containerReader struct{ *jobBuilder }

// hasImage reports whether the tasks of a job run in a container image.
func hasImage(job *hclsyntax.Body) bool { return job.Attributes["image"] != nil }

// readContainer reads the container image, and how its tasks see it. Which image the name
// means now is found when the job is submitted.
func (b containerReader) readContainer() {
	if !hasImage(b.body) {
		for _, name := range []string{"image_workdir", "image_entrypoint", "image_writable", "mounts"} {
			if a := b.body.Attributes[name]; a != nil {
				b.reportProblem(a.NameRange, name+" is only for tasks in a container image",
					"Add image = \"docker://…\", or remove this line.")
			}
		}
		return
	}
	if text, at, ok := b.constantText("image", imageHint); ok {
		b.setImage(text, at)
	}
	if text, at, ok := b.constantText("image_workdir", workdirHint); ok {
		if !path.IsAbs(text) {
			b.reportProblem(at, fmt.Sprintf("%q is not an absolute path", truncateText(text)), workdirHint)
		} else {
			b.ad.SetString(roost.AttrContainerWorkdir, path.Clean(text))
		}
	}
	if on, ok := b.constantBool("image_writable"); ok {
		b.ad.SetBool(roost.AttrContainerWritable, on)
	}
	if on, ok := b.constantBool("image_entrypoint"); ok {
		b.ad.SetBool(roost.AttrUseEntrypoint, on)
	}
	b.readMounts()
}

// setImage checks the name of the image. Paths are made absolute, so the job
// means the same wherever its ad is read.
func (b containerReader) setImage(text string, at hcl.Range) {
	r, err := imageref.Parse(text)
	if err != nil {
		b.reportProblem(at, fmt.Sprintf("%q is no container image", truncateText(text)), reasonOf(err)+".")
		return
	}
	if r.Path != "" {
		r.Path = absolutePath(r.Path, b.parser.options.Dir, b.parser.options.Home)
	}
	b.ad.SetString(roost.AttrContainerImage, r.WithPath(r.Path))
}

// reasonOf returns the last part of an error, as a sentence.
func reasonOf(err error) string {
	text := err.Error()
	if at := strings.LastIndex(text, roost.Invalid.Error()+": "); at >= 0 {
		text = text[at+len(roost.Invalid.Error())+2:]
	}
	return capitalized(errors.New(text))
}

// readMounts reads which directories of the machine the tasks see.
func (b containerReader) readMounts() {
	list, at, ok := constraintReader(b).constantTextList("mounts")
	if !ok {
		return
	}
	if len(list) > maxMounts {
		b.reportProblem(at, fmt.Sprintf("there are %d mounts", len(list)),
			fmt.Sprintf("A job has at most %d.", maxMounts))
		return
	}
	var texts []string
	lines := map[string]bool{}
	for _, text := range list {
		m, err := imageref.ParseMount(text)
		switch {
		case err != nil:
			b.reportProblem(at, fmt.Sprintf("%q cannot be mounted", truncateText(text)), reasonOf(err)+".")
		case lines[m.Target]:
			b.reportProblem(at, fmt.Sprintf("two mounts are at %s", truncateText(m.Target)), "Remove one of them.")
		}
		lines[m.Target] = true
		texts = append(texts, m.String())
	}
	if len(texts) > 0 {
		b.ad.SetStrings(roost.AttrContainerMounts, texts)
	}
}
