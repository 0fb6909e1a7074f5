package jobad

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// ObjectScheme begins the name of an object in an object store.
const ObjectScheme = "s3://"

// maxObjectKey is the most bytes of a key, as S3 has it.
const maxObjectKey = 1024

// ObjectURL is an object, or all objects whose keys begin alike, as s3://bucket/key and
// s3://bucket/prefix/.
type ObjectURL struct{ Bucket, Key string }

// IsPrefix reports whether the objects below a prefix are meant.
func (u ObjectURL) IsPrefix() bool { return u.Key == "" || strings.HasSuffix(u.Key, "/") }

// String returns the URL in its usual form. There is no secret in it.
func (u ObjectURL) String() string { return ObjectScheme + u.Bucket + "/" + u.Key }

var objectBucketForm = lazyregexp.New(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// IsObjectURL reports whether a name is one of an object and not of a file.
func IsObjectURL(name string) bool { return strings.HasPrefix(name, ObjectScheme) }

// ParseObjectURL parses the name of an object or of a prefix. A key is also the name of a
// file on a machine or in a directory, so that not all keys of S3 are allowed.
func ParseObjectURL(text string) (u ObjectURL, err error) {
	rest, ok := strings.CutPrefix(text, ObjectScheme)
	if !ok {
		return u, fmt.Errorf("%.200q: %w: the name of an object begins with %s", text, roost.Invalid, ObjectScheme)
	}
	u.Bucket, u.Key, _ = strings.Cut(rest, "/")
	if strings.Contains(u.Key, "X-Amz-") || strings.Contains(u.Bucket, "@") {
		return ObjectURL{}, fmt.Errorf("%.40q…: %w: it has a key or a signature in it, which is a secret: write "+
			"s3://bucket/key, and store your keys with roost secret set", ObjectScheme, roost.Invalid)
	}
	if !objectBucketForm().MatchString(u.Bucket) {
		return u, fmt.Errorf("%.200q: %w: %.80q is not the name of a bucket: 3 to 63 small letters, digits, dots and "+
			"dashes", text, roost.Invalid, u.Bucket)
	}
	if err := checkObjectKey(u.Key); err != nil {
		return u, fmt.Errorf("%.200q: %w: %w", text, roost.Invalid, err)
	}
	return u, nil
}

func checkObjectKey(key string) error {
	switch {
	case len(key) > maxObjectKey:
		return fmt.Errorf("its key has %d bytes, and %d is the most", len(key), maxObjectKey)
	case !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl):
		return errors.New("its key is not in UTF-8, or has control characters")
	case strings.Contains(key, " => "):
		return errors.New("its key has \" => \" in it, which divides an object from its name where the task runs")
	case key == "":
		return nil
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(key, "/"), "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("its key has %q between two slashes, which is no name of a file", part)
		}
	}
	return nil
}

// SplitTransfer divides an entry of a list of inputs or outputs at the arrow.
func SplitTransfer(entry string) (from, to string) {
	from, to, _ = strings.Cut(entry, " => ")
	return strings.TrimSpace(from), strings.TrimSpace(to)
}

// checkObjects refuses objects that cannot be moved. What has a column in its name is
// checked when a task is started.
func (r *adReader) checkObjects(p *JobSpec) {
	some := false
	check := func(attribute, text string) {
		some = true
		if strings.Contains(text, "$(") {
			return
		}
		if _, err := ParseObjectURL(strings.ReplaceAll(text, "$$", "$")); err != nil {
			r.fail(attribute, err.Error())
		}
	}
	inputs, _ := r.ad.Strings(roost.AttrTransferIn)
	for _, entry := range inputs {
		if from, to := SplitTransfer(entry); IsObjectURL(from) {
			check(roost.AttrTransferIn, from)
			if to == "" {
				r.fail(roost.AttrTransferIn, fmt.Sprintf("%.200q has no name where the task runs: write %s => NAME",
					from, from))
			}
		}
	}
	outputs, _ := r.ad.Strings(roost.AttrTransferOut)
	for _, entry := range outputs {
		if from, to := SplitTransfer(entry); IsObjectURL(to) {
			check(roost.AttrTransferOut, to)
		} else if IsObjectURL(from) {
			r.fail(roost.AttrTransferOut, fmt.Sprintf("%.200q is an object, and a file of the task goes there: write "+
				"FILE => %s", from, from))
		}
	}
	p.NoFlock = some || !r.boolean(AttrFlock, true) // machines of other pools move no objects
	if some && p.Transfer != "always" {
		r.fail(roost.AttrTransfer, fmt.Sprintf("%q does not go with objects of an object store, which need a "+
			"directory of the task's own: write always", p.Transfer))
	}
	if some && p.Service != nil {
		r.fail(roost.AttrTransferIn, "a service has no objects as inputs or outputs: let its program get and put them")
	}
}
