package roost

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestParseLimitRequests(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "[]",
		"  ":                     "[]",
		"matlab":                 "[matlab]",
		"Matlab , ANSYS:2":       "[ansys:2 matlab]",
		"a.b_c-d:1000000, z : 1": "[a.b_c-d:1000000 z]",
	} {
		got, err := ParseLimitRequests(text)
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: got %v and %v, want %s", text, got, err, want)
		}
	}
	var many []string
	for i := range MaxLimitRequests + 1 {
		many = append(many, fmt.Sprintf("l%d", i))
	}
	for text, want := range map[string]string{
		"a:0":                            `limit a: invalid request: "0" is not a whole number from 1 to 1000000`,
		"a:-1":                           "not a whole number",
		"a:1.5":                          "not a whole number",
		"a:99999999999999999999":         "not a whole number",
		"a:":                             "not a whole number",
		"a,,b":                           "a name is a letter",
		"1a":                             "a name is a letter",
		"a b":                            "a name is a letter",
		"a, A":                           "limit a: invalid request: it is named twice; write a:2 to take two",
		strings.Repeat("a", 65):          "at most 64",
		strings.Join(many, ", "):         "limits: invalid request: there are 17, and 16 is the most",
		"a:" + strings.Repeat("9", 1000): "not a whole number",
	} {
		_, err := ParseLimitRequests(text)
		if err == nil || !errors.Is(err, Invalid) || !strings.Contains(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
}
