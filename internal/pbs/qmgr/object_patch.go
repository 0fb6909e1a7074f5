package qmgr

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// PatchFor returns the RFC 7396 merge patch between two objects. Fields that are in
// neither are not affected.
func PatchFor(before, after any) (map[string]any, error) {
	var docs [2]map[string]any
	for i, o := range []any{before, after} {
		text, err := json.Marshal(o)
		if err == nil {
			err = json.Unmarshal(text, &docs[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return patchBetween(docs[0], docs[1]), nil
}

func patchBetween(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[key]; !stays {
			patch[key] = nil
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		was, had := before[key].(map[string]any)
		is, has := after[key].(map[string]any)
		switch {
		case had && has:
			if inner := patchBetween(was, is); len(inner) > 0 {
				patch[key] = inner
			}
		case !reflect.DeepEqual(before[key], after[key]):
			patch[key] = after[key]
		}
	}
	return patch
}
