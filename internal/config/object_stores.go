package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
)

// ObjectStore is an object store whose objects are inputs and outputs of the jobs that
// are submitted at this node. Each user's own keys are a secret of that user.
type ObjectStore struct {
	Name      string
	Endpoint  string   // "https://s3.example.org:9000"
	Region    string   // empty: us-east-1
	Buckets   []string // empty: all that no other object store of the node has
	Secret    string   // name of the secret with a user's keys; "s3" by default
	PathStyle bool     // the bucket is in the path of a request, and not in its host
	Plain     bool     // the endpoint may be one without TLS
}

// defaultObjectSecret is the secret that has a user's keys.
const defaultObjectSecret = "s3"

// maxObjectStores bounds the object stores of a node.
const maxObjectStores = 64

// FindObjectStore returns the object store that has a bucket, nil if none does.
func FindObjectStore(list []ObjectStore, bucket string) *ObjectStore {
	var other *ObjectStore
	for i := range list {
		if slices.Contains(list[i].Buckets, bucket) {
			return &list[i]
		}
		if len(list[i].Buckets) == 0 {
			other = &list[i]
		}
	}
	return other
}

// readObjectStores reads the object_store blocks. A bucket is in one object store, and
// one of them has the buckets that no other names.
func (s *blockReader) readObjectStores(n *Node) {
	buckets := map[string]string{}
	for _, b := range s.nestedBlocks("object_store") {
		var name string
		if len(b.Labels) == 1 {
			name = b.Labels[0]
		} else {
			s.addProblem(b.TypeRange, "write it as object_store \"lab\" { … }", "object_store has no name")
		}
		o := ObjectStore{Name: name, Secret: defaultObjectSecret}
		s.readObjectStore(b, &o)
		owned := o.Buckets
		if len(owned) == 0 {
			owned = []string{""}
		}
		for _, bucket := range owned {
			if other, twice := buckets[bucket]; twice {
				s.addProblem(b.TypeRange, "name the buckets of each with buckets = [\"…\"]; one object store may have "+
					"the others", "object_store %q and %q have the same buckets", other, name)
			}
			buckets[bucket] = name
		}
		if slices.ContainsFunc(n.ObjectStores, func(p ObjectStore) bool { return p.Name == name }) {
			s.addProblem(b.TypeRange, "give each its own name", "two object stores have the name %q", name)
		}
		n.ObjectStores = append(n.ObjectStores, o)
	}
	if len(n.ObjectStores) > maxObjectStores {
		s.addProblem(s.body.SrcRange, "name fewer", "there are more than %d object stores", maxObjectStores)
	}
}

func (s *blockReader) readObjectStore(b *hclsyntax.Block, to *ObjectStore) {
	o := s.innerBlock(b)
	o.readBool("plain", &to.Plain)
	o.readSetting("endpoint", `"https://s3.example.org"`, func(text string) error {
		to.Endpoint = text
		if err := checkEndpoint(text); err != nil {
			return err
		}
		if strings.HasPrefix(text, "http:") && !to.Plain {
			return fmt.Errorf("%q has no TLS, so that whoever sees the network gets the data and may use the requests "+
				"of others: write https://, or plain = true if that network may be trusted", text)
		}
		return nil
	})
	o.readText("region", &to.Region)
	o.readList("buckets", `["data"]`, &to.Buckets, func(text string, at hcl.Range) {
		if !bucketForm().MatchString(text) {
			o.addProblem(at, "3 to 63 small letters, digits, dots and dashes", "%q is not the name of a bucket", text)
		}
	})
	o.readBool("path_style", &to.PathStyle)
	o.readSetting("secret", `"s3"`, func(text string) error {
		to.Secret = text
		return roost.CheckSecretName(text)
	})
	o.reportUnknown()
	if to.Endpoint == "" {
		s.addProblem(b.TypeRange, "add endpoint = \"https://s3.example.org\"", "object_store %q has no endpoint",
			to.Name)
	}
}

func (w fileWriter) writeObjectStores(list []ObjectStore) {
	for _, o := range list {
		b := w.writeBlock("object_store", o.Name)
		b.writeBool("plain", o.Plain)
		b.writeText("endpoint", o.Endpoint)
		b.writeText("region", o.Region)
		b.writeList("buckets", o.Buckets)
		b.writeBool("path_style", o.PathStyle)
		b.writeText("secret", o.Secret)
	}
}
