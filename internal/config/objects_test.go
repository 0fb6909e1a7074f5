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
