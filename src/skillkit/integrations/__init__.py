"""Where agents live: tools without a framework, LangChain, MCP, commands in model output."""
