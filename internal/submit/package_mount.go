package submit

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/image/imageref"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

const (
	packageExample = "package \"web@live\" { at = \"/app\" }"
	packageHint    = "Name a package that roost package push has put into the pool: " + packageExample + "."
	targetHint     = "It is the directory where the tasks have the package: at = \"/app\"."
)

// readPackages reads the package blocks. What their labels mean is found when the job is
// submitted.
func (b containerReader) readPackages() {
	var mounts []imageref.PackageMount
	var texts []string
	for _, block := range b.body.Blocks {
		if block.Type != "package" {
			continue
		}
		m, ok := b.readPackage(block)
		if !ok {
			continue
		}
		mounts, texts = append(mounts, m), append(texts, m.String())
		if err := imageref.CheckPackageTargets(mounts); err != nil {
			b.reportProblem(block.LabelRanges[0], "this package would be in the place of another", reasonOf(err)+".")
			mounts = mounts[:len(mounts)-1]
		}
		if len(texts) > jobad.MaxPackageMounts {
			b.reportProblem(block.TypeRange, "there are too many packages",
				fmt.Sprintf("A job has at most %d. Put the files of several into one.", jobad.MaxPackageMounts))
			return
		}
	}
	if len(texts) > 0 {
		b.ad.SetStrings(roost.AttrPackageMounts, texts)
	}
}

// readPackage reads one block.
func (b containerReader) readPackage(block *hclsyntax.Block) (m imageref.PackageMount, ok bool) {
	if len(block.Labels) != 1 {
		b.reportProblem(block.TypeRange, "a package has one name",
			"Write it in quotes behind the word: "+packageExample+".")
		return m, false
	}
	m.Reference = block.Labels[0]
	r, err := imageref.Parse(m.Reference)
	if err != nil || r.Source != imageref.Stored {
		b.reportProblem(block.LabelRanges[0], fmt.Sprintf("%q is not NAME@LABEL or NAME@VERSION",
			truncateText(m.Reference)), packageHint)
		return m, false
	}
	if !b.parser.refuseUnknown(block, "a package", []string{"at"}, nil) {
		return m, false
	}
	text, at, ok := b.inBlock(block).constantText("at", targetHint)
	if !ok {
		if block.Body.Attributes["at"] == nil {
			b.reportProblem(block.TypeRange, "the package does not say where it is to be", targetHint)
		}
		return m, false
	}
	if m.Target, err = imageref.CheckPackageTarget(text); err != nil {
		b.reportProblem(at, fmt.Sprintf("no package can be at %q", truncateText(text)), reasonOf(err)+".")
		return m, false
	}
	return m, true
}

// isInPackage reports whether a file will be in a package of the job.
func isInPackage(ad *classad.Ad, name string) bool {
	texts, _ := ad.Strings(roost.AttrPackageMounts)
	return slices.ContainsFunc(texts, func(text string) bool {
		m, err := imageref.ParsePackageMount(text)
		return err == nil && strings.HasPrefix(path.Clean(name), m.Target+"/")
	})
}
