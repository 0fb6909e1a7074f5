package route

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// OpenAPI describes the routes of the API as an OpenAPI 3.1 document. It is made of the
// table, so that it cannot fall behind.
func OpenAPI(routes []Route, version string) map[string]any {
	d := &apiDescription{schemas: map[string]any{}}
	paths := map[string]map[string]any{}
	for i := range routes {
		r := &routes[i]
		if r.Pattern == "" {
			continue
		}
		if paths[r.Pattern] == nil {
			paths[r.Pattern] = map[string]any{}
		}
		paths[r.Pattern][strings.ToLower(r.Method)] = d.operation(r)
	}
	d.schemas["Problem"] = d.structSchema(reflect.TypeFor[Problem]())
	return map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{"title": "Roost", "version": version,
			"description": "Jobs and machines of a pool. The documents are those of roost-json(7): a program skips " +
				"members that it does not know. roost-http(7) has the conventions."},
		"servers": []any{map[string]any{"url": "/"}},
		"paths":   paths,
		"components": map[string]any{"schemas": d.schemas, "securitySchemes": map[string]any{
			"token": map[string]any{"type": "http", "scheme": "bearer",
				"description": "an API token of roost web token add"},
			"cookie": map[string]any{"type": "apiKey", "in": "cookie", "name": CookieName(true),
				"description": "the session of a browser"},
		}},
	}
}

// apiDescription collects the schemas of an OpenAPI document.
type apiDescription struct{ schemas map[string]any }

var wildcard = regexp.MustCompile(`\{([a-z]+)\}`)

// operation describes one route.
func (d *apiDescription) operation(r *Route) map[string]any {
	parameters := []any{}
	for _, name := range wildcard.FindAllStringSubmatch(r.Pattern, -1) {
		parameters = append(parameters, map[string]any{"name": name[1], "in": "path", "required": true,
			"schema": textSchema()})
	}
	for _, p := range r.Query {
		parameters = append(parameters, map[string]any{"name": p.Name, "in": "query", "description": p.Description,
			"schema": textSchema()})
	}
	reply := map[string]any{"description": "done"}
	if r.Reply != nil {
		reply["content"] = content(typeJSON, d.schema(reflect.TypeOf(r.Reply)))
	}
	if r.Rows != "" {
		d.describeRows(r, reply)
	}
	o := map[string]any{"summary": r.Summary, "operationId": operationID(r), "parameters": parameters,
		"responses": map[string]any{"2XX": reply, "default": map[string]any{"description": "refused or failed",
			"content": content("application/problem+json", reference("Problem"))}},
		"security": r.security()}
	if r.Body != nil {
		o["requestBody"] = map[string]any{"required": true,
			"content": content(typeJSON, d.schema(reflect.TypeOf(r.Body)))}
	}
	return o
}

// describeRows adds what the reply of a list is besides a document.
func (d *apiDescription) describeRows(r *Route, reply map[string]any) {
	all := map[string]any{typeJSON: map[string]any{"schema": map[string]any{"type": "object"}}}
	if known, ok := reply["content"].(map[string]any); ok {
		all = known
	}
	for _, kind := range rowTypes {
		rows := textSchema()
		rows["description"] = "the rows of " + r.Rows
		all[kind] = map[string]any{"schema": rows}
	}
	reply["content"] = all
	header := func(text string) map[string]any {
		return map[string]any{"description": text, "schema": textSchema()}
	}
	reply["headers"] = map[string]any{
		"Link":              header("the address of the next part, with rel=next (RFC 8288)"),
		"Roost-Unreachable": header("a schedd whose rows are missing; there may be several")}
}

func content(kind string, schema map[string]any) map[string]any {
	return map[string]any{kind: map[string]any{"schema": schema}}
}

// operationID names a route: "get_v1_jobs_id".
func operationID(r *Route) string {
	return strings.ToLower(r.Method) + strings.NewReplacer("/", "_", "{", "", "}", "", ".", "_").Replace(r.Pattern)
}

// security describes who may call a route.
func (r *Route) security() []any {
	switch r.Rights {
	case Anonymous:
		return []any{}
	case OwnSession:
		return []any{map[string]any{"cookie": []string{}}}
	}
	return []any{map[string]any{"token": []string{string(r.Rights.Scope())}}, map[string]any{"cookie": []string{}}}
}

func textSchema() map[string]any { return map[string]any{"type": "string"} }

func reference(name string) map[string]any {
	return map[string]any{"$ref": "#/components/schemas/" + name}
}

// schema describes a type. Structs with a name are described once.
func (d *apiDescription) schema(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return map[string]any{}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Struct:
		if _, known := d.schemas[t.Name()]; !known {
			d.schemas[t.Name()] = map[string]any{} // it may contain itself
			d.schemas[t.Name()] = d.structSchema(t)
		}
		return reference(t.Name())
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return textSchema()
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "integer"}
}

// structSchema describes the members of a struct.
func (d *apiDescription) structSchema(t reflect.Type) map[string]any {
	members, required := map[string]any{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			inner := d.structSchema(f.Type)
			maps.Copy(members, inner["properties"].(map[string]any))
			if more, ok := inner["required"].([]string); ok {
				required = append(required, more...)
			}
		case name == "-" || name == "" || !f.IsExported():
		default:
			members[name] = d.schema(f.Type)
			if options == "" {
				required = append(required, name)
			}
		}
	}
	s := map[string]any{"type": "object", "properties": members}
	if slices.Sort(required); len(required) > 0 {
		s["required"] = required
	}
	return s
}
