/* The metaschemas of draft 2020-12, for schemas that refer to them. Constants only.
 *
 * "default" is left out of them: it says what leaving a keyword out means, and would otherwise be filled into
 * the schemas that they judge. */
#include "schema/resource.h"

#include <string.h>

#define DRAFT "https://json-schema.org/draft/2020-12/"
#define HEAD(name)                                                                             \
	"{\"$schema\":\"" DRAFT "schema\",\"$id\":\"" DRAFT name "\",\"$dynamicAnchor\":\"meta\"," \
	"\"type\":[\"object\",\"boolean\"],"
#define VOCABULARY(name, holds) "\"" DRAFT "vocab/" name "\":" #holds

static const struct {
	const char *uri, *text;
} DOCUMENTS[] = {
	{DRAFT "schema",
     HEAD("schema") "\"$vocabulary\":{" VOCABULARY("core", true) "," VOCABULARY("applicator", true) "," VOCABULARY("unevaluated", true) "," VOCABULARY(
		 "validation",
		 true) "," VOCABULARY("meta-data",
                              true) "," VOCABULARY("format-annotation",
                                                   true) "," VOCABULARY("content",
                                                                        true) "},"
                                                                              "\"allOf\":[{\"$ref\":\"meta/core\"},{\"$ref\":\"meta/applicator\"},"
                                                                              "{\"$ref\":\"meta/unevaluated\"},{\"$ref\":\"meta/validation\"},"
                                                                              "{\"$ref\":\"meta/meta-data\"},{\"$ref\":\"meta/format-annotation\"},"
                                                                              "{\"$ref\":\"meta/content\"}],\"properties\":{\"definitions\":{\"type\":\"object\","
                                                                              "\"additionalProperties\":{\"$dynamicRef\":\"#meta\"},\"deprecated\":true},"
                                                                              "\"dependencies\":{\"type\":\"object\","
                                                                              "\"additionalProperties\":{\"anyOf\":[{\"$dynamicRef\":\"#meta\"},"
                                                                              "{\"$ref\":\"meta/validation#/$defs/stringArray\"}]},\"deprecated\":true},"
                                                                              "\"$recursiveAnchor\":{\"$ref\":\"meta/core#/$defs/anchorString\",\"deprecated\":true},"
                                                                              "\"$recursiveRef\":{\"$ref\":\"meta/core#/$defs/uriReferenceString\",\"deprecated\":true}}}"},
	{DRAFT "meta/core",
     HEAD("meta/core") "\"$vocabulary\":{" VOCABULARY(
		 "core",
		 true) "},"
               "\"properties\":{\"$id\":{\"$ref\":\"#/$defs/uriReferenceString\",\"pattern\":\"^[^#]*#?$\"},"
               "\"$schema\":{\"$ref\":\"#/$defs/uriString\"},"
               "\"$ref\":{\"$ref\":\"#/$defs/uriReferenceString\"},"
               "\"$anchor\":{\"$ref\":\"#/$defs/anchorString\"},"
               "\"$dynamicRef\":{\"$ref\":\"#/$defs/uriReferenceString\"},"
               "\"$dynamicAnchor\":{\"$ref\":\"#/$defs/anchorString\"},\"$vocabulary\":{\"type\":\"object\","
               "\"propertyNames\":{\"$ref\":\"#/$defs/uriString\"},"
               "\"additionalProperties\":{\"type\":\"boolean\"}},\"$comment\":{\"type\":\"string\"},"
               "\"$defs\":{\"type\":\"object\",\"additionalProperties\":{\"$dynamicRef\":\"#meta\"}}},"
               "\"$defs\":{\"anchorString\":{\"type\":\"string\","
               "\"pattern\":\"^[A-Za-z_][-A-Za-z0-9._]*$\"},\"uriString\":{\"type\":\"string\","
               "\"format\":\"uri\"},\"uriReferenceString\":{\"type\":\"string\","
               "\"format\":\"uri-reference\"}}}"},
	{DRAFT "meta/applicator",
     HEAD("meta/applicator") "\"$vocabulary\":{" VOCABULARY(
		 "applicator",
		 true) "},"
               "\"properties\":{\"prefixItems\":{\"$ref\":\"#/$defs/schemaArray\"},"
               "\"items\":{\"$dynamicRef\":\"#meta\"},\"contains\":{\"$dynamicRef\":\"#meta\"},"
               "\"additionalProperties\":{\"$dynamicRef\":\"#meta\"},\"properties\":{\"type\":\"object\","
               "\"additionalProperties\":{\"$dynamicRef\":\"#meta\"},\"default\":{}},"
               "\"patternProperties\":{\"type\":\"object\","
               "\"additionalProperties\":{\"$dynamicRef\":\"#meta\"},"
               "\"propertyNames\":{\"format\":\"regex\"}},\"dependentSchemas\":{\"type\":\"object\","
               "\"additionalProperties\":{\"$dynamicRef\":\"#meta\"}},"
               "\"propertyNames\":{\"$dynamicRef\":\"#meta\"},\"if\":{\"$dynamicRef\":\"#meta\"},"
               "\"then\":{\"$dynamicRef\":\"#meta\"},\"else\":{\"$dynamicRef\":\"#meta\"},"
               "\"allOf\":{\"$ref\":\"#/$defs/schemaArray\"},\"anyOf\":{\"$ref\":\"#/$defs/schemaArray\"},"
               "\"oneOf\":{\"$ref\":\"#/$defs/schemaArray\"},\"not\":{\"$dynamicRef\":\"#meta\"}},"
               "\"$defs\":{\"schemaArray\":{\"type\":\"array\",\"minItems\":1,"
               "\"items\":{\"$dynamicRef\":\"#meta\"}}}}"},
	{DRAFT "meta/unevaluated",
     HEAD("meta/unevaluated") "\"$vocabulary\":{" VOCABULARY(
		 "unevaluated", true) "},"
                              "\"properties\":{\"unevaluatedItems\":{\"$dynamicRef\":\"#meta\"},"
                              "\"unevaluatedProperties\":{\"$dynamicRef\":\"#meta\"}}}"},
	{DRAFT "meta/validation",
     HEAD("meta/validation") "\"$vocabulary\":{" VOCABULARY(
		 "validation",
		 true) "},"
               "\"properties\":{\"type\":{\"anyOf\":[{\"$ref\":\"#/$defs/simpleTypes\"},{\"type\":\"array\","
               "\"items\":{\"$ref\":\"#/$defs/simpleTypes\"},\"minItems\":1,\"uniqueItems\":true}]},"
               "\"const\":true,\"enum\":{\"type\":\"array\",\"items\":true},"
               "\"multipleOf\":{\"type\":\"number\",\"exclusiveMinimum\":0},"
               "\"maximum\":{\"type\":\"number\"},\"exclusiveMaximum\":{\"type\":\"number\"},"
               "\"minimum\":{\"type\":\"number\"},\"exclusiveMinimum\":{\"type\":\"number\"},"
               "\"maxLength\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},"
               "\"minLength\":{\"$ref\":\"#/$defs/nonNegativeIntegerDefault0\"},"
               "\"pattern\":{\"type\":\"string\",\"format\":\"regex\"},"
               "\"maxItems\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},"
               "\"minItems\":{\"$ref\":\"#/$defs/nonNegativeIntegerDefault0\"},"
               "\"uniqueItems\":{\"type\":\"boolean\"},"
               "\"maxContains\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},"
               "\"minContains\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},"
               "\"maxProperties\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},"
               "\"minProperties\":{\"$ref\":\"#/$defs/nonNegativeIntegerDefault0\"},"
               "\"required\":{\"$ref\":\"#/$defs/stringArray\"},\"dependentRequired\":{\"type\":\"object\","
               "\"additionalProperties\":{\"$ref\":\"#/$defs/stringArray\"}}},"
               "\"$defs\":{\"nonNegativeInteger\":{\"type\":\"integer\",\"minimum\":0},"
               "\"nonNegativeIntegerDefault0\":{\"$ref\":\"#/$defs/nonNegativeInteger\"},"
               "\"simpleTypes\":{\"enum\":[\"array\",\"boolean\",\"integer\",\"null\",\"number\",\"object\","
               "\"string\"]},\"stringArray\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},"
               "\"uniqueItems\":true}}}"},
	{DRAFT "meta/meta-data",
     HEAD("meta/meta-data") "\"$vocabulary\":{" VOCABULARY(
		 "meta-data",
		 true) "},"
               "\"properties\":{\"title\":{\"type\":\"string\"},\"description\":{\"type\":\"string\"},"
               "\"default\":true,\"deprecated\":{\"type\":\"boolean\"},\"readOnly\":{\"type\":\"boolean\"},"
               "\"writeOnly\":{\"type\":\"boolean\"},\"examples\":{\"type\":\"array\",\"items\":true}}}"},
	{DRAFT "meta/format-annotation",
     HEAD("meta/format-annotation") "\"$vocabulary\":{" VOCABULARY(
		 "format-annotation", true) "},"
                                    "\"properties\":{\"format\":{\"type\":\"string\"}}}"},
	{DRAFT "meta/format-assertion",
     HEAD("meta/format-assertion") "\"$vocabulary\":{" VOCABULARY(
		 "format-assertion", true) "},"
                                   "\"properties\":{\"format\":{\"type\":\"string\"}}}"},
	{DRAFT "meta/content",
     HEAD("meta/content") "\"$vocabulary\":{" VOCABULARY(
		 "content",
		 true) "},"
               "\"properties\":{\"contentEncoding\":{\"type\":\"string\"},"
               "\"contentMediaType\":{\"type\":\"string\"},\"contentSchema\":{\"$dynamicRef\":\"#meta\"}}}"},
};

const char *lat_metaschema_text(const char *uri)
{
	for (size_t i = 0; i < sizeof DOCUMENTS / sizeof *DOCUMENTS; i++)
		if (strcmp(DOCUMENTS[i].uri, uri) == 0)
			return DOCUMENTS[i].text;
	return NULL;
}
