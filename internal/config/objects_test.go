package config

import (
	"strings"
	"testing"
)

func TestObjects(t *testing.T) {
	n, err := loadText(t, `
name = "n1"
checkpoint_server {
  objects {
    endpoint         = "https://s3.example.org"
    bucket           = "roost"
    credentials_file = "keys"
  }
}`)
	if err != nil {
		t.Fatal(err)
	}
	if o := n.Images.Objects; o == nil || o.Bucket != "roost" || !strings.HasPrefix(o.CredentialsFile, "/") {
		t.Errorf("got %+v", o)
	}
}

func TestObjectMistakes(t *testing.T) {
	const rest = "bucket = \"roost\"\n credentials_file = \"/k\"\n"
	for text, want := range map[string]string{
		"":                                 "objects has no endpoint",
		rest:                               "objects has no endpoint",
		"bucket=1":                         "bucket",
		"colour=\"":                        "colour",
		"endpoint = \"ftp://x\"\n" + rest:  "does not begin with https://",
		"endpoint = \"https://\"\n" + rest: "names no host",
		"endpoint = \"https://me:secret@s3.x.org\"\n" + rest:          "keys belong into credentials_file",
		"endpoint = \"https://s3.x.org/roost\"\n" + rest:              "settings of their own",
		"endpoint = \"https://s3.x.org\"\nbucket = \"A_B\"":           "not the name of a bucket",
		"endpoint = \"https://s3.x.org\"\nprefix = \"../x\"\n" + rest: "does not begin names",
		"endpoint = \"https://s3.x.org\"\nprefix = \"/x\"\n" + rest:   "does not begin names",
	} {
		_, err := loadText(t, "name = \"n1\"\ncheckpoint_server {\nobjects {\n"+text+"\n}\n}\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestObjectStores(t *testing.T) {
	n, err := loadText(t, `
name = "n1"
collector {}
negotiator {}
schedd {}
object_store "lab" {
  endpoint = "https://s3.lab.example"
  buckets  = ["data", "results"]
}
object_store "local" {
  endpoint   = "http://10.0.0.9:9000"
  plain      = true
  path_style = true
  secret     = "minio"
}`)
	if err != nil {
		t.Fatal(err)
	}
	for bucket, want := range map[string]string{"data": "lab", "results": "lab", "other": "local"} {
		if o := FindObjectStore(n.ObjectStores, bucket); o == nil || o.Name != want {
			t.Errorf("%s is in %+v", bucket, o)
		}
	}
	if o := FindObjectStore(n.ObjectStores[:1], "other"); o != nil {
		t.Errorf("a bucket that nobody has is in %q", o.Name)
	}
	if n.ObjectStores[0].Secret != "s3" || n.ObjectStores[1].Secret != "minio" {
		t.Errorf("got %+v", n.ObjectStores)
	}
}

func TestObjectStoreMistakes(t *testing.T) {
	const good = "object_store \"a\" { endpoint = \"https://x.org\" }\n"
	for text, want := range map[string]string{
		"object_store { endpoint = \"https://x.org\" }":                                       "has no name",
		"object_store \"a\" {}":                                                               "has no endpoint",
		"object_store \"a\" {\n endpoint = \"http://x.org\"\n}":                               "has no TLS",
		"object_store \"a\" {\n endpoint = \"https://k:s@x.org\"\n}":                          "names no host",
		"object_store \"a\" {\nendpoint = \"https://x.org\"\nbuckets = [\"A\"]\n}":            "name of a bucket",
		"object_store \"a\" {\n endpoint = \"https://x.org\"\nsecret = \"../x\"\n}":           "secret",
		"object_store \"a\" {\n endpoint = \"https://x.org\"\n key = \"x\"\n}":                "key",
		good + "object_store \"b\" { endpoint = \"https://y.org\" }":                          "the same buckets",
		good + "object_store \"a\" {\n endpoint = \"https://y.org\"\n buckets = [\"b-1\"]\n}": "two object stores",
	} {
		_, err := loadText(t, "name = \"n1\"\nschedd {}\n"+text+"\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
