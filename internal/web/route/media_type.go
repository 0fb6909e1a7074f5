package route

import (
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The media types of answers. Lists have all of them, other views JSON alone.
const (
	typeJSON      = "application/json"
	typeCSV       = "text/csv"
	typeJSONLines = "application/jsonl"
	typeNDJSON    = "application/x-ndjson" // an older name of JSON Lines
)

// rowTypes are those that lists have besides JSON.
var rowTypes = []string{typeCSV, typeJSONLines, typeNDJSON}

// chooseMediaType finds the type of an answer by the header Accept. That is before its
// view asks for anything. See RFC 9110, section 12.5.1; pages have one type.
func (c *Call) chooseMediaType() error {
	if c.IsPage {
		return nil
	}
	known := []string{typeJSON}
	if c.Route.Rows != "" {
		known = append(known, rowTypes...)
		c.Writer.Header().Add("Vary", "Accept")
	}
	if c.mediaType = preferredType(strings.Join(c.Request.Header.Values("Accept"), ","), known); c.mediaType == "" {
		return NewProblem(http.StatusNotAcceptable, "this address has no answer of a type that Accept names",
			"accept "+strings.Join(known, ", "))
	}
	return nil
}

// preferredType returns the type that a header Accept likes best. Of equals it is the
// one that is named first, and then the first that is known. Empty: it takes none.
func preferredType(accept string, known []string) string {
	ranges := parseAccept(accept)
	if len(ranges) == 0 {
		return known[0]
	}
	best, found := acceptRange{}, ""
	for _, kind := range known {
		r, ok := rangeOf(ranges, kind)
		if ok && r.quality > 0 && (found == "" || r.quality > best.quality ||
			r.quality == best.quality && r.place < best.place) {
			best, found = r, kind
		}
	}
	return found
}

// acceptRange is one media range of a header Accept.
type acceptRange struct {
	kind    string // "text/csv", "text/*" or "*/*"
	quality float64
	place   int
}

// maxAcceptRanges bounds the ranges of a header that are read.
const maxAcceptRanges = 64

func parseAccept(accept string) (all []acceptRange) {
	for part := range strings.SplitSeq(accept, ",") {
		kind, parameters, err := mime.ParseMediaType(part)
		if err != nil || !strings.Contains(kind, "/") || len(all) == maxAcceptRanges {
			continue
		}
		r := acceptRange{kind: kind, quality: 1, place: len(all)}
		if q, ok := parameters["q"]; ok {
			if r.quality, err = strconv.ParseFloat(q, 64); err != nil || !(r.quality >= 0 && r.quality <= 1) {
				continue
			}
		}
		all = append(all, r)
	}
	return all
}

// rangeOf returns the range that says the most about a type.
func rangeOf(ranges []acceptRange, kind string) (acceptRange, bool) {
	group, _, _ := strings.Cut(kind, "/")
	for _, name := range []string{kind, group + "/*", "*/*"} {
		if i := slices.IndexFunc(ranges, func(r acceptRange) bool { return r.kind == name }); i >= 0 {
			return ranges[i], true
		}
	}
	return acceptRange{}, false
}
