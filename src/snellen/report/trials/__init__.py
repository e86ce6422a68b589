"""Parts of the pages of trials: pictures to zoom into, chats, differences of texts, bars, galleries, groups."""
