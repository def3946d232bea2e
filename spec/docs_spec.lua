local doc_examples = require "scripts.doc_examples"

describe("the documents", function()
	local examples = doc_examples.list()

	it("have examples that can be run", function()
		assert.is_true(#examples > 0)
	end)

	for _, example in ipairs(examples) do
		it("have an example that runs at " .. example.name, function()
			local ok, output = doc_examples.run(example)
			assert(ok, output)
		end)
	end
end)
