// Definitions generated for the rule interfaces; the builders are in ShardingRuleText.cpp and ShardingRuleViews.cpp.
#include "compiler/Interfaces/ShardingRule.h"

#include "compiler/Interfaces/ShardingRule.cpp.inc"
