package config

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// ObjectSettings is the object store of a checkpoint server. Container images and
// packages move there.
type ObjectSettings struct {
	Endpoint        string // "https://s3.example.org:9000"
	Bucket          string
	Prefix          string // of the names of objects, without a slash at either end; may be empty
	Region          string
	CredentialsFile string      // absolute path
	CacheSize       roost.Bytes // what the server's own disk has of them; 0: what it has room for
	Max             roost.Bytes // of all images and packages; 0: no bound
}

var (
	bucketForm = lazyregexp.New(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixForm = lazyregexp.New(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`)
)

// maxObjectPrefix leaves room for the rest of a name, of which S3 takes 1,024 bytes.
const maxObjectPrefix = 512

func (s *blockReader) readCheckpointServer(b *hclsyntax.Block, to *CheckpointServerSettings) {
	i := s.innerBlock(b)
	i.readAddresses("listen", &to.Listen)
	i.readText("dir", &to.Dir)
	i.readSize("max_size", `"500GiB"`, &to.Max)
	i.readSize("max_files_of_user", `"10GiB"`, &to.MaxFilesOfUser)
	i.readBool("checkpoints_at_submit_node", &to.CheckpointsAtSubmitNode)
	if b := i.singleBlock("objects"); b != nil {
		to.Objects = &ObjectSettings{}
		i.readObjects(b, to.Objects)
	}
	i.reportUnknown()
}

// fillDefaults makes the path of the keys absolute. at is the directory of the node file.
func (o *ObjectSettings) fillDefaults(at string) {
	if o != nil && o.CredentialsFile != "" {
		o.CredentialsFile = joinBelow(at, o.CredentialsFile)
	}
}

func (s *blockReader) readObjects(b *hclsyntax.Block, to *ObjectSettings) {
	o := s.innerBlock(b)
	o.readSetting("endpoint", `"https://s3.example.org"`, func(text string) error {
		to.Endpoint = text
		return checkEndpoint(text)
	})
	o.readSetting("bucket", `"roost"`, func(text string) error {
		if to.Bucket = text; !bucketForm().MatchString(text) {
			return fmt.Errorf("%q is not the name of a bucket: 3 to 63 small letters, digits, dots and dashes", text)
		}
		return nil
	})
	o.readSetting("prefix", `"pools/physics"`, func(text string) error {
		if to.Prefix = text; !prefixForm().MatchString(text) || len(text) > maxObjectPrefix {
			return fmt.Errorf("%q does not begin names: letters, digits, and . _ - / in the middle", text)
		}
		return nil
	})
	o.readText("region", &to.Region)
	o.readText("credentials_file", &to.CredentialsFile)
	o.readSize("cache_size", `"200GiB"`, &to.CacheSize)
	o.readSize("max_size", `"20TiB"`, &to.Max)
	o.reportUnknown()
	for _, needed := range []struct{ name, value, example string }{{"endpoint", to.Endpoint, "https://s3.example.org"},
		{"bucket", to.Bucket, "roost"}, {"credentials_file", to.CredentialsFile, "/etc/roost/objects.credentials"}} {
		if needed.value == "" {
			s.addProblem(b.TypeRange, fmt.Sprintf("add %s = %q", needed.name, needed.example), "objects has no %s",
				needed.name)
		}
	}
}

// checkEndpoint returns why a text is not the address of an object store. Nothing but a
// host and a port follows the scheme, as the bucket is a setting of its own.
func checkEndpoint(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("%q is not a URL", text)
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("%q does not begin with https:// or http://", text)
	case u.Host == "" || u.User != nil:
		return fmt.Errorf("%q names no host, or a user: keys belong into credentials_file", text)
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q has more than a host and a port: bucket and prefix are settings of their own", text)
	}
	return nil
}

func (w fileWriter) writeObjects(o *ObjectSettings) {
	if o == nil {
		return
	}
	b := w.writeBlock("objects")
	b.writeText("endpoint", o.Endpoint)
	b.writeText("bucket", o.Bucket)
	b.writeText("prefix", o.Prefix)
	b.writeText("region", o.Region)
	b.writeText("credentials_file", o.CredentialsFile)
	b.writeSize("cache_size", o.CacheSize)
	b.writeSize("max_size", o.Max)
}
