package jobad

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

func TestParseObjectURL(t *testing.T) {
	for text, want := range map[string]ObjectURL{
		"s3://data/a":         {"data", "a"},
		"s3://data/a/b c.csv": {"data", "a/b c.csv"},
		"s3://da.ta-1/runs/":  {"da.ta-1", "runs/"},
		"s3://data/":          {"data", ""},
		"s3://data":           {"data", ""},
		"s3://data/ä?x=1#2":   {"data", "ä?x=1#2"},
	} {
		got, err := ParseObjectURL(text)
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
		if got.IsPrefix() != (want.Key == "" || strings.HasSuffix(want.Key, "/")) {
			t.Errorf("%q: is it a prefix? %v", text, got.IsPrefix())
		}
	}
	for text, want := range map[string]string{
		"https://x/y":                            "begins with s3://",
		"s3://UP/x":                              "not the name of a bucket",
		"s3:///x":                                "not the name of a bucket",
		"s3://data/../x":                         "no name of a file",
		"s3://data//x":                           "no name of a file",
		"s3://data/a\nb":                         "control characters",
		"s3://data/a\xff":                        "not in UTF-8",
		"s3://data/a => b":                       "divides an object",
		"s3://data/" + strings.Repeat("x", 1025): "1024 is the most",
		"s3://AKIA:topsecret@data/x":             "which is a secret",
		"s3://data/x?X-Amz-Signature=abcdef":     "which is a secret",
	} {
		_, err := ParseObjectURL(text)
		if !errors.Is(err, roost.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v, want %q", text, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "topsecret") || strings.Contains(err.Error(), "abcdef")) {
			t.Errorf("the message has the secret: %v", err)
		}
	}
}
