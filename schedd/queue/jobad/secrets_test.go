package jobad

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/classad"
)

// TestSecretVariables reads which variables of the environment have secrets. No image is
// made of the processes of such a job.
func TestSecretVariables(t *testing.T) {
	for secrets, want := range map[string]string{
		`{[Name = "db"; Variable = "DB_PASSWORD"]}`:                          "",
		`{[Name = "db"; Variable = "9X"]}`:                                   "does not begin with a digit",
		`{[Name = "db"; Variable = "A=B"]}`:                                  "letters, digits and _",
		`{[Name = "db"; Variable = "LISTEN_FDS"]}`:                           "begin with LISTEN_",
		`{[Name = "db"; Variable = "P"], [Name = "web"; Variable = "P"]}`:    `"P" has two secrets`,
		`{[Name = "db"; Variable = "` + strings.Repeat("x", 300) + `"]}`:     "from 1 to",
		`{[Name = "db"; Variable = "P"], [Name = "web"; OnChange = "none"]}`: "",
		`{[Name = "db"; Group = "physics"; Variable = "P"]}`:                 "",
		`{[Name = "physics/db"; Variable = "P"]}`:                            "the name of a secret has",
		`{[Name = "db"; Group = "../x"; Variable = "P"]}`:                    "the name of a group has",
		`{[Name = "db"], [Name = "db"; Group = "g"; Variable = "P"]}`:        "would be the file",
		`{[Name = "db"], [Name = "db"; Variable = "P"]}`:                     "would be the file",
	} {
		ad, err := classad.Parse(`[Cmd = "/bin/true"; Iwd = "/"; Checkpoint = true; Secrets = ` + secrets + `]`)
		if err != nil {
			t.Fatal(err)
		}
		p, err := ReadSpec(ad)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q", secrets, err, want)
		case want == "" && p.Checkpoints != nil:
			t.Errorf("%s: an image would have the secret", secrets)
		case want == "" && p.Secrets[0].Variable == "":
			t.Errorf("%s: got %+v", secrets, p.Secrets)
		}
	}
}
